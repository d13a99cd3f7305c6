"""Calls that must be made are made, as each family writes them, whatever the model would rather say.

No model: a reply is drawn at random among all that the grammar allows, and read by the family's own parser.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from functools import cache

import numpy as np
import pytest

from engine.api import (
    Chat,
    ChatMessage,
    Grammar,
    GrammarKind,
    Origin,
    Request,
    Tool,
    ToolCallDelta,
    ToolChoice,
)
from engine.errors import InvalidRequest
from engine.runtime.grammar_compiler import GrammarCompiler
from engine.runtime.grammar_matcher import GrammarMatcher
from engine.runtime.reply_wishes import ReplyWishes
from engine.text.replies.families import FAMILIES
from engine.text.replies.family import Family
from engine.text.replies.json_families import GENERIC
from engine.text.replies.reply_format import ReplyFormat, ReplyParser, ReplyPlan
from engine.text.replies.thinking import THINKING, Thinking
from engine.text.text_stream import TextStream, Told
from engine.text.tokenizer import Tokenizer
from fakes.no_trials import NoTrials
from fakes.tiny_text import CHATML_CONTROLS, byte_level

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 12},
        "unit": {"enum": ["C", "F"]},
        "days": {"type": "integer", "minimum": 0, "maximum": 99},
        "more": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
TOOLS = (Tool(name="get_weather", parameters=json.dumps(SCHEMA)), Tool(name="now"))
SHAPED = [family for family in (*FAMILIES, GENERIC) if family.shape is not None]
MOST_TOKENS = 400
THINK = THINKING[0]


@cache
def tokenizer(*tags: str) -> Tokenizer:
    """A vocabulary with these tags as tokens, half of them control tokens."""
    half = len(tags) // 2
    return byte_level(
        controls=(*CHATML_CONTROLS, *tags[:half]),
        user_defined=tags[half:],
    )


def format_of(family: Family, words: Tokenizer, *, thinks: bool = False) -> ReplyFormat:
    think = thinking_of(family)
    source = " ".join(family.has) + (think.open + think.close if thinks else "")
    reply = ReplyFormat.of(source, words)
    assert reply.family.name == family.name
    return reply if thinks else changed(reply, thinking=None)


def thinking_of(family: Family) -> Thinking:
    return family.thinking or THINK


def chat(**fields: object) -> Chat:
    messages = (ChatMessage(role="user", content="hi"),)
    return Chat(messages=messages, **{"tools": TOOLS, "tool_choice": ToolChoice.REQUIRED, **fields})  # type: ignore[arg-type]


def asked(prompt: Chat, **fields: object) -> Request:
    return Request(request_id="r", origin=Origin.API, prompt=prompt, tells_parts=True, **fields)  # type: ignore[arg-type]


@dataclass
class Reply:
    """A drawn reply, told apart."""

    text: str = ""
    reasoning: str = ""
    raw: str = ""
    has_ended: bool = False
    calls: list[tuple[str, str]] = field(default_factory=list)

    def hear(self, told: Told) -> None:
        self.text += told.text
        self.reasoning += told.reasoning
        for delta in told.calls:
            self._call(delta)

    def _call(self, delta: ToolCallDelta) -> None:
        if delta.name:
            self.calls.append((delta.name, ""))
        name, arguments = self.calls[delta.index]
        self.calls[delta.index] = (name, arguments + delta.arguments)


def allowed(matcher: GrammarMatcher, ids: Sequence[int]) -> list[int]:
    mask = matcher.follow(ids)
    assert matcher.error is None, matcher.error
    bits = np.unpackbits(mask.words.view(np.uint8), bitorder="little")
    return [int(token_id) for token_id in np.flatnonzero(bits)]


def draw(
    wishes: ReplyWishes, words: Tokenizer, request: Request, plan: ReplyPlan, seed: int = 0
) -> Reply:
    """A random reply; where it may end it mostly does, and letters are likelier than other bytes."""
    grammar = wishes.grammar_for(request, plan)
    assert grammar is not None
    matcher = wishes.matcher_for(request, grammar)
    assert matcher is not None
    parser = ReplyParser(wishes.reply, plan, seed="r")
    stream, reply, dice = TextStream(words, parser=parser), Reply(), random.Random(seed)
    ids: list[int] = []
    while len(ids) < MOST_TOKENS:
        choices = allowed(matcher, ids)
        ends = words.eos_ids.intersection(choices)
        if not choices or (ends and (len(ends) == len(choices) or dice.random() < 0.6)):
            break
        spelled = {i: words.token_bytes(i, show_control=True) for i in choices if i not in ends}
        token_id = drawn(spelled, reply.raw.encode(), closers_of(wishes.reply.family), dice)
        ids.append(token_id)
        reply.raw += spelled[token_id].decode("utf-8", "replace")
        told = stream.push(token_id)
        reply.hear(told)
        if told.has_ended:
            break
    reply.has_ended = len(ids) < MOST_TOKENS
    reply.hear(stream.finish())
    return reply


def closers_of(family: Family) -> tuple[bytes, ...]:
    """What ends texts of any length."""
    shape = family.shape
    ends = [] if shape is None or shape.parameters is None else [shape.parameters.after_value]
    return tuple(end.strip().encode() for end in (*ends, thinking_of(family).close))


def drawn(
    spelled: dict[int, bytes], so_far: bytes, closers: tuple[bytes, ...], dice: random.Random
) -> int:
    """A token: mostly what ends a text that may go on, or what JSON is made of."""
    for closer in closers:
        begun = max(k for k in range(len(closer)) if so_far.endswith(closer[:k]))
        following = [i for i, piece in spelled.items() if piece == closer[begun : begun + 1]]
        whole = [i for i, piece in spelled.items() if piece and piece == closer]
        if (following or whole) and dice.random() < (0.9 if begun else 0.1):
            return dice.choice(following + whole)
    likely = [i for i, piece in spelled.items() if piece[:1] and piece[:1] in b'"}]ax']
    return dice.choice(likely if likely and dice.random() < 0.8 else list(spelled))


def wishes_of(
    family: Family, *, tags_are_tokens: bool, thinks: bool = False
) -> tuple[ReplyWishes, Tokenizer]:
    think = thinking_of(family)
    tags = (*family.marks, *((think.open, think.close) if thinks else ()))
    words = tokenizer(*(tags if tags_are_tokens else ()))
    reply = format_of(family, words, thinks=thinks)
    return ReplyWishes(reply, words, GrammarCompiler(words, NoTrials())), words


def assert_sound(name: str, arguments: str) -> None:
    given = json.loads(arguments)
    if name == "now":
        assert given == {}
        return
    assert name == "get_weather"
    assert {"city", "days"} <= given.keys() <= SCHEMA["properties"].keys()
    assert isinstance(given["city"], str)
    assert 0 <= given["days"] <= 99


def assert_all_sound(reply: Reply) -> None:
    """Every call, but for the last where nobody waited for its end."""
    for name, arguments in reply.calls if reply.has_ended else reply.calls[:-1]:
        assert_sound(name, arguments)


every_family = pytest.mark.parametrize("family", SHAPED, ids=lambda family: family.name)
every_vocabulary = pytest.mark.parametrize("tags_are_tokens", [True, False], ids=["tokens", "text"])


@every_vocabulary
@every_family
def test_a_call_that_must_be_made_is_made(family: Family, tags_are_tokens: bool) -> None:
    wishes, words = wishes_of(family, tags_are_tokens=tags_are_tokens)
    plan = ReplyPlan(tools=TOOLS)
    for seed in range(4):
        reply = draw(wishes, words, asked(chat()), plan, seed)
        assert reply.calls, reply.raw
        assert_all_sound(reply)
        assert not (reply.has_ended and reply.text.strip()), reply.raw


@pytest.mark.parametrize(
    "family", [each for each in FAMILIES if each.shape is None], ids=lambda family: family.name
)
def test_a_family_whose_spelling_is_not_known_makes_it_in_plain_json(family: Family) -> None:
    wishes, words = wishes_of(family, tags_are_tokens=True)
    request = asked(chat())
    plan = wishes.plan_for(request, ReplyPlan(tools=TOOLS))
    assert plan is not None
    for seed in range(3):
        reply = draw(wishes, words, request, plan, seed)
        assert reply.calls
        assert_all_sound(reply)
    free = asked(chat(tool_choice=ToolChoice.AUTO))
    assert wishes.plan_for(free, ReplyPlan(tools=TOOLS)) == ReplyPlan(tools=TOOLS)


@every_family
def test_reasoning_may_come_first_and_must_be_ended_where_it_has_begun(family: Family) -> None:
    if family.has_own_reasoning:
        pytest.skip("reasons in its own way")
    num_ended = 0
    for tags_are_tokens in (True, False):
        wishes, words = wishes_of(family, tags_are_tokens=tags_are_tokens, thinks=True)
        for is_thinking in (True, False):
            plan = ReplyPlan(tools=TOOLS, is_thinking=is_thinking)
            for seed in range(3):
                reply = draw(wishes, words, asked(chat()), plan, seed)
                num_ended += reply.has_ended
                if reply.has_ended:
                    assert reply.calls, reply.raw
                    assert_all_sound(reply)
                    assert not reply.text.strip(), reply.raw
    assert num_ended


@every_vocabulary
@every_family
def test_the_tool_that_is_named_is_called_once(family: Family, tags_are_tokens: bool) -> None:
    wishes, words = wishes_of(family, tags_are_tokens=tags_are_tokens)
    named = chat(tool_choice=ToolChoice.NAMED, tool_name="now")
    reply = draw(wishes, words, asked(named), ReplyPlan(tools=TOOLS, most_calls=1))
    ((name, arguments),) = reply.calls
    assert (name, json.loads(arguments)) == ("now", {})


@every_vocabulary
@every_family
def test_one_call_where_no_more_are_wanted(family: Family, tags_are_tokens: bool) -> None:
    wishes, words = wishes_of(family, tags_are_tokens=tags_are_tokens)
    for seed in range(2):
        plan = ReplyPlan(tools=TOOLS, most_calls=1)
        reply = draw(wishes, words, asked(chat(calls_in_parallel=False)), plan, seed)
        assert len(reply.calls) == 1
        assert reply.has_ended
        assert_all_sound(reply)


@every_vocabulary
@every_family
def test_a_strict_tool_may_be_called_and_is_called_rightly(
    family: Family, tags_are_tokens: bool
) -> None:
    wishes, words = wishes_of(family, tags_are_tokens=tags_are_tokens)
    tools = tuple(changed(tool, is_strict=True) for tool in TOOLS)
    free = chat(tools=tools, tool_choice=ToolChoice.AUTO)
    replies = [draw(wishes, words, asked(free), ReplyPlan(tools=tools), seed) for seed in range(4)]
    for reply in replies:
        assert_all_sound(reply)
    assert not all(reply.calls for reply in replies)


def test_a_free_reply_has_no_grammar() -> None:
    wishes, _ = wishes_of(GENERIC, tags_are_tokens=False)
    plan = ReplyPlan(tools=TOOLS)
    for choice in (ToolChoice.AUTO, ToolChoice.NONE):
        assert wishes.grammar_for(asked(chat(tool_choice=choice)), plan) is None
    assert wishes.matcher_for(asked(chat(tool_choice=ToolChoice.AUTO)), None) is None
    assert wishes.grammar_for(asked(chat(tools=())), ReplyPlan()) is None


def test_a_schema_that_cannot_be_followed_is_taken_loosely_unless_it_is_strict() -> None:
    wishes, _ = wishes_of(GENERIC, tags_are_tokens=False)
    odd = '{"type": "object", "properties": {"x": {"type": "string", "not": {}}}}'
    tool = Tool(name="odd", parameters=odd)
    plan = ReplyPlan(tools=(tool,))
    loose = asked(chat(tools=(tool,)))
    assert wishes.matcher_for(loose, wishes.grammar_for(loose, plan)) is not None
    strict = asked(chat(tools=(changed(tool, is_strict=True),)))
    with pytest.raises(InvalidRequest, match="tools cannot be followed") as caught:
        wishes.matcher_for(strict, wishes.grammar_for(strict, plan))
    assert caught.value.param == "tools"


@every_family
def test_json_that_was_asked_for_and_calls_go_together(family: Family) -> None:
    wishes, words = wishes_of(family, tags_are_tokens=True)
    answer = Grammar(
        kind=GrammarKind.JSON_SCHEMA, source='{"enum": [7, [8]]}', param="response_format"
    )
    request = asked(chat(tool_choice=ToolChoice.AUTO), grammar=answer)
    seen = set()
    for seed in range(10):
        reply = draw(wishes, words, request, ReplyPlan(tools=TOOLS), seed)
        assert_all_sound(reply)
        if reply.has_ended and not reply.calls:
            assert json.loads(reply.text) in (7, [8])
        seen.add(bool(reply.calls))
    assert seen == {True, False}


def test_a_call_and_another_answer_exclude_each_other() -> None:
    wishes, _ = wishes_of(GENERIC, tags_are_tokens=False)
    other = Grammar(kind=GrammarKind.JSON_SCHEMA, source="{}", param="response_format")
    with pytest.raises(InvalidRequest, match="tool_choice asks for a call") as caught:
        wishes.grammar_for(asked(chat(), grammar=other), ReplyPlan(tools=TOOLS))
    assert caught.value.param == "response_format"


@every_vocabulary
def test_json_that_was_asked_for_comes_after_the_reasoning(tags_are_tokens: bool) -> None:
    wishes, words = wishes_of(GENERIC, tags_are_tokens=tags_are_tokens, thinks=True)
    schema = Grammar(kind=GrammarKind.JSON_SCHEMA, source=json.dumps(SCHEMA))
    request = asked(chat(tools=(), tool_choice=ToolChoice.AUTO), grammar=schema)
    plan = ReplyPlan(is_thinking=True)
    answers = [draw(wishes, words, request, plan, seed) for seed in range(8)]
    for answer in answers:
        assert answer.has_ended
        assert {"city", "days"} <= json.loads(answer.text).keys()


def test_what_a_clients_own_grammar_says_is_not_told_apart() -> None:
    wishes, _ = wishes_of(GENERIC, tags_are_tokens=False, thinks=True)
    own = Grammar(kind=GrammarKind.LARK, source='start: "x"')
    plan = ReplyPlan(is_thinking=True)
    request = asked(chat(tools=(), tool_choice=ToolChoice.AUTO))
    assert wishes.plan_for(request, plan) == plan
    assert wishes.plan_for(changed(request, grammar=own), plan) is None
    assert wishes.plan_for(changed(request, tells_parts=False), plan) is None
