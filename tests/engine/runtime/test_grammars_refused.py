"""Grammars that are wrong, that end nowhere or that cost too much: they are refused by name and harm nobody else."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import (
    Chat,
    ChatMessage,
    Failed,
    Finished,
    FinishReason,
    Grammar,
    GrammarKind,
    Request,
    Tool,
    ToolChoice,
)
from engine.errors import InvalidRequest
from engine.runtime.engine import Engine
from engine.runtime.grammar_compiler import GrammarCompiler
from engine.runtime.grammar_trial import TooCostly
from fakes.disk_rig import LONG
from fakes.grammar_asks import JSON, asked, finished, gbnf, lark, regex
from fakes.listening import Ear, run_all
from fakes.parking_rig import inside, load


def refusal(engine: Engine, request: Request) -> InvalidRequest:
    ear = run_all(engine, [request])
    end = ear.wait_end(request.request_id)
    assert isinstance(end, Failed)
    assert isinstance(end.error, InvalidRequest), end.error
    assert not end.partial
    return end.error


def test_a_dead_end_ends_its_request_alone(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=LONG)
    dead = lark('start: "ab" NEVER\nNEVER: /c+/ & /d+/\n')
    beside = asked("beside", regex("[a-z]{30}"))
    ear = run_all(engine, [asked("dead", dead), beside])
    end = ear.wait_end("dead")
    assert isinstance(end, Failed)
    assert isinstance(end.error, InvalidRequest)
    assert end.error.param == "grammar"
    assert finished(ear, "beside").reason is FinishReason.STOP


# --- what is refused


@pytest.mark.parametrize(
    ("grammar", "words"),
    [
        (regex("[unclosed"), "unclosed"),
        (lark("start: missing"), "missing"),
        (lark("begin: /a/"), "start"),
        (lark("start: <|nobody|>"), "nobody"),
        (Grammar(kind=GrammarKind.JSON_SCHEMA, source='{"not": {}}'), "not"),
        (Grammar(kind=GrammarKind.JSON_SCHEMA, source='{"$ref": "#/$defs/x"}'), "x"),
        (Grammar(kind=GrammarKind.JSON_SCHEMA, source="{"), "no JSON"),
        (Grammar(kind=GrammarKind.JSON_SCHEMA, source="false"), "false"),
        (Grammar(kind=GrammarKind.JSON_SCHEMA, source='{"type": "wrong"}'), "wrong"),
        (regex("a" * 300_000), "300000 characters, the limit is 8192"),
        (lark("start: " + "(" * 9000 + "/a/" + ")" * 9000), "too deeply nested"),
        (gbnf("root ::= missing"), "line 1, column 10"),
        (gbnf("root ::= <|nobody|>"), "nobody"),
        (gbnf("a" * 200_000), "the limit is 131072"),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else "",
)
def test_a_grammar_that_is_wrong_is_refused_by_name(
    engine: Engine, model_path: Path, grammar: Grammar, words: str
) -> None:
    load(engine, model_path, pool_tokens=LONG)
    error = refusal(engine, asked("r", replace(grammar, param="response_format")))
    assert error.param == "response_format"
    assert str(error).startswith("response_format ")
    assert words in str(error)
    assert len(str(error)) < 1200


def test_ignore_eos_does_not_go_with_a_grammar(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=LONG)
    error = refusal(engine, asked("r", JSON, ignore_eos=True))
    assert error.param == "ignore_eos"
    assert "ignore_eos does not go with grammar" in str(error)


def test_grammars_are_compiled_on_threads_of_their_own(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=LONG)
    threads = []
    compiler = inside(engine).grammars
    compiled = compiler._compiled

    def watched(grammar: Grammar, *, is_plain: bool) -> object:
        threads.append(threading.current_thread().name)
        assert is_plain
        return compiled(grammar, is_plain=is_plain)

    compiler._compiled = watched  # type: ignore[method-assign, assignment]
    tool = Tool(name="add", parameters='{"type": "object", "properties": {}}', is_strict=True)
    messages = (ChatMessage(role="user", content="add"),)
    calls = Chat(messages=messages, tools=(tool,), tool_choice=ToolChoice.REQUIRED)
    ear = Ear(engine)
    engine.submit(asked("own", JSON))
    engine.submit(replace(asked("calls", JSON, prompt=calls), grammar=None, tells_parts=True))
    finished(ear, "own")
    finished(ear, "calls")
    assert threads == ["layby-grammars"] * 2


class Hall:
    """Trials that a test lets go on."""

    def __init__(self) -> None:
        self.tried: list[str] = []
        self.is_open = threading.Event()

    def check(self, source: str, special: frozenset[int]) -> None:
        self.tried.append(source)
        if "hostile" in source:
            assert self.is_open.wait(60)
            raise TooCostly("preparing it takes longer than 5 s")

    def close(self) -> None:
        self.is_open.set()


def test_nobody_waits_behind_costly_grammars_and_these_are_refused(
    engine: Engine, model_path: Path
) -> None:
    load(engine, model_path, pool_tokens=LONG)
    hall, model = Hall(), inside(engine)
    model.grammars = GrammarCompiler(model.tokenizer, hall)
    ear = Ear(engine)
    own = regex("[ab]{3}")
    for n in range(3):
        engine.submit(asked(f"hostile-{n}", lark(f"start: /hostile{n}/")))
    engine.submit(asked("new", own))
    assert finished(ear, "new").reason is FinishReason.STOP
    for n in range(3, 9):
        engine.submit(asked(f"hostile-{n}", lark(f"start: /hostile{n}/")))
    for name, grammar in {"json": JSON, "again": own}.items():
        engine.submit(asked(name, grammar))
        assert finished(ear, name).reason is FinishReason.STOP
    assert not any(event.request_id.startswith("hostile") for event in ear.events)
    hall.is_open.set()
    for n in range(9):
        end = ear.wait_end(f"hostile-{n}")
        assert isinstance(end, Failed)
        assert isinstance(end.error, InvalidRequest)
        assert "grammar cannot be followed: preparing it takes longer than 5 s" in str(end.error)
    mine = [source for source in hall.tried if "hostile" not in source]
    assert len(mine) == 1, "what was tried is not tried again, and a plain schema never"


def rule_chain(rule: str, count: int) -> str:
    """Rules each of which names the next."""
    return "".join(rule.format(i, i + 1) for i in range(count))


def test_a_chain_of_rules_as_long_as_a_grammar_can_be_ends_nobody(
    engine: Engine, model_path: Path
) -> None:
    load(engine, model_path, pool_tokens=LONG)
    chains = [
        lark("start: a0\n" + rule_chain("a{}: a{}\n", 9000) + "a9000: /x/"),
        lark("start: A0\n" + rule_chain("A{}: A{}\n", 9000) + "A9000: /x/"),
        Grammar(
            kind=GrammarKind.JSON_SCHEMA,
            source=json.dumps(
                {
                    "$ref": "#/$defs/0",
                    "$defs": {i: {"$ref": f"#/$defs/{i + 1}"} for i in range(3400)},
                }
            ),
        ),
        gbnf("root ::= a0\n" + rule_chain("a{} ::= a{} | root\n", 4000) + 'a4000 ::= "x"\n'),
    ]
    ear = Ear(engine)  # and not together: on the threads that are there for them
    for n, grammar in enumerate(chains):
        engine.submit(asked(f"r{n}", grammar))
    ends = [ear.wait_end(f"r{n}") for n in range(4)]
    assert [type(end) for end in ends] == [Finished, Finished, Failed, Failed], ends
