"""What a grammar costs in a step of the engine: the mask's share, and steps with one by steps without, in turn.

Run: python tests/bench/bench_grammar.py MODEL [--tokens N] [--rounds N]. Not collected by pytest; prints a table.
Replies to one chat, with as many rows as are asked for, at temperature 0.8. The mask is computed in Python's thread and
is timed there; what the native kernels do with it is in the second figure, which other load disturbs more.
"""
# ruff: noqa: T201 - the table is the point

from __future__ import annotations

import argparse
import json
import statistics
import threading
import time
from pathlib import Path

from bench_python_share import Stopwatch, load

from engine.api import (
    Chat,
    ChatMessage,
    EngineEvent,
    Failed,
    Finished,
    Grammar,
    GrammarKind,
    Origin,
    Request,
    SamplingParams,
)
from engine.runtime.engine import Engine
from engine.runtime.grammar_matcher import GrammarMatcher
from engine.runtime.model_runner import ModelRunner

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "email": {"type": "string", "pattern": "^[a-z.]+@[a-z]+\\.(com|org)$"},
        "languages": {"type": "array", "items": {"enum": ["English", "German", "French"]}},
        "notes": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["name", "age", "email", "languages", "notes"],
    "additionalProperties": False,
}
JSON_GBNF = r"""
root   ::= value
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]+)? ([eE] [-+]? [0-9]{1,5})? ws
ws     ::= | " " | "\n" [ \t]{0,20}
"""
GRAMMARS: dict[str, Grammar | None] = {
    "none": None,
    "JSON schema": Grammar(
        kind=GrammarKind.JSON_SCHEMA,
        source=json.dumps({"type": "array", "items": PERSON, "minItems": 500}),
    ),
    "any JSON": Grammar(kind=GrammarKind.JSON_SCHEMA, source='{"type": "object"}'),
    "regex": Grammar(kind=GrammarKind.REGEX, source=r"([A-Z][a-z ,]*\. ){500,}"),
    "GBNF of JSON": Grammar(kind=GrammarKind.GBNF, source=JSON_GBNF),
    "GBNF by letters": Grammar(
        kind=GrammarKind.GBNF, source='root ::= [a-z ]+ "." end\nend ::= root | "!"'
    ),
}
ROWS = (1, 4, 16)
QUESTION = "Write a long list of invented people in JSON: name, age, email, languages, notes."


def ask(engine: Engine, name: str, rows: int, tokens: int) -> None:
    """Let so many replies be written together, and wait for them."""
    left, is_done = {f"{name}-{time.monotonic()}-{i}" for i in range(rows)}, threading.Event()

    def hear(events: tuple[EngineEvent, ...]) -> None:
        for event in events:
            if isinstance(event, Failed):
                print(f"    {name}: {event.error}")
            if isinstance(event, Finished | Failed):
                left.discard(event.request_id)
                if not left:
                    is_done.set()

    unsubscribe = engine.subscribe(hear)
    for index, request_id in enumerate(sorted(left)):
        message = ChatMessage(role="user", content=f"{QUESTION} ({index})")
        engine.submit(
            Request(
                request_id=request_id,
                origin=Origin.API,
                prompt=Chat(messages=(message,)),
                sampling=SamplingParams(temperature=0.8, seed=index),
                max_tokens=tokens,
                grammar=GRAMMARS[name],
                ignore_eos=GRAMMARS[name] is None,
            )
        )
    assert is_done.wait(600)
    unsubscribe()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--tokens", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    watch = Stopwatch()
    watch.watch(GrammarMatcher, "follow")
    watch.watch(ModelRunner, "execute")
    engine = Engine()
    load(engine, args.model, parallel=max(ROWS))
    library = engine._model.runner._compute._program._library  # type: ignore[union-attr]
    watch.watch_native(library.functions)
    for rows in ROWS:
        steps: dict[str, list[dict[str, float]]] = {name: [] for name in GRAMMARS}
        for _ in range(args.rounds):
            for name in GRAMMARS:
                ask(engine, name, rows, 20)
                watch.steps.clear()
                ask(engine, name, rows, args.tokens)
                steps[name] += watch.steps[5:]
        report(rows, steps)
    engine.shutdown()


def report(rows: int, steps: dict[str, list[dict[str, float]]]) -> None:
    plain = statistics.median(step["period"] for step in steps["none"])
    print(f"{rows} {'row' if rows == 1 else 'rows'}; a step without a grammar {plain * 1e6:.0f} us")
    for name, taken in steps.items():
        if name == "none" or not taken:
            continue
        masks = [step.get("follow", 0.0) for step in taken]
        periods = [step["period"] for step in taken]
        worst = sorted(masks)[int(0.99 * len(masks))]
        print(
            f"    {name}: masks take {sum(masks) / sum(periods):.1%} of the steps; mean "
            f"{statistics.mean(masks) * 1e6:.0f} us, 1 % over {worst * 1e6:.0f} us; "
            f"median step {statistics.median(periods) / plain:.3f} of one without ({len(taken)} steps)"
        )


if __name__ == "__main__":
    main()
