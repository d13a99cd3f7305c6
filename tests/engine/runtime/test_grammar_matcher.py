"""Which tokens a grammar allows, token by token, with the vocabularies that models have.

The grammars of tool calls here are those to copy: text until a call begins, then nothing but the call.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from random import Random

import numpy as np
import pytest

from engine.api import Grammar, GrammarKind, Origin, Request, Text
from engine.errors import InvalidRequest
from engine.runtime.grammar_compiler import GrammarCompiler
from engine.runtime.grammar_matcher import GrammarMatcher
from engine.text.tokenizer import Tokenizer
from fakes.no_trials import NoTrials
from fakes.tiny_text import byte_level, sentencepiece

MARKS = ("<tool_call>", "</tool_call>", "<think>", "</think>")
ADD = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"const": "add"}, "n": {"type": "integer"}},
        "required": ["name", "n"],
        "additionalProperties": False,
    }
)
MARKED_CALLS = f"""
start: TEXT (call TEXT)*
call: <tool_call> "\\n" %json {ADD} "\\n" </tool_call>
TEXT: /(.|\\n)*/
"""
"""Where the model has a token for the mark: no text is that token."""
SPELLED_CALLS = f"""
start: (begin "\\n" %json {ADD} "\\n</tool_call>")* TEXT
begin[lazy]: TEXT "<tool_call>"
TEXT: /(.|\\n)*/
"""
"""Where the mark is text like any other: the first that is spelled out begins a call."""


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return byte_level(user_defined=MARKS, eos_token_id=last_id(), eot_token_id=last_id() - 2)


def last_id() -> int:
    return byte_level(user_defined=MARKS).vocab_size - 1


def matcher_of(
    tokenizer: Tokenizer, source: str, kind: GrammarKind = GrammarKind.LARK
) -> GrammarMatcher:
    grammar = Grammar(kind=kind, source=source)
    request = Request(request_id="r", origin=Origin.API, prompt=Text(text=""), grammar=grammar)
    matcher = GrammarCompiler(tokenizer, NoTrials()).matcher_for(request)
    assert matcher is not None
    return matcher


def allowed(matcher: GrammarMatcher, ids: Iterable[int]) -> set[int]:
    """The tokens that may come after these."""
    words = matcher.follow(list(ids)).words
    assert matcher.error is None, matcher.error
    return set(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist())


def bytes_of(text: str) -> list[int]:
    """One token a byte; the tiny vocabularies begin with them in the order of their alphabet."""
    return [spelled_ids()[bytes([byte])] for byte in text.encode()]


def spelled_ids() -> dict[bytes, int]:
    plain = byte_level()
    return {plain.token_bytes(i): i for i in range(256)}


def mark(tokenizer: Tokenizer, name: str) -> int:
    found = {token.content: token.token_id for token in tokenizer.plain_added_tokens}
    found |= {token.content: token.token_id for token in tokenizer.control_tokens}
    return found[name]


def reads(matcher: GrammarMatcher, ids: list[int]) -> int:
    """How many of these tokens may come one after the other."""
    for count, token_id in enumerate(ids):
        if token_id not in allowed(matcher, ids[:count]):
            return count
    return len(ids)


def spelled(tokenizer: Tokenizer, matcher: GrammarMatcher, text: str) -> list[int]:
    """A text in the longest tokens that may come."""
    ids: list[int] = []
    left = text.encode()
    while left:
        fits = [
            i for i in allowed(matcher, ids) if left.startswith(tokenizer.token_bytes(i) or b"\0")
        ]
        assert fits, (text, left)
        ids.append(max(fits, key=lambda i: len(tokenizer.token_bytes(i))))
        left = left.removeprefix(tokenizer.token_bytes(ids[-1]))
    return ids


CALL = '\n{"name": "add", "n": 7}\n'


def test_text_is_free_until_a_marked_call_begins_which_is_then_enforced(
    tokenizer: Tokenizer,
) -> None:
    begin, end = mark(tokenizer, "<tool_call>"), mark(tokenizer, "</tool_call>")
    text, call = bytes_of("Let me <add>."), bytes_of(CALL)
    whole = [*text, begin, *call, end, *bytes_of(" and"), begin, *call, end]
    assert reads(matcher_of(tokenizer, MARKED_CALLS), whole) == len(whole)
    assert tokenizer.eos_ids <= allowed(matcher_of(tokenizer, MARKED_CALLS), text)
    matcher = matcher_of(tokenizer, MARKED_CALLS)
    within = allowed(matcher, [*text, begin, *bytes_of('\n{"name": "add", "n": 7')])
    assert within.isdisjoint({begin, end, *tokenizer.eos_ids})
    assert bytes_of("x")[0] not in within
    assert allowed(matcher, [*text, begin, *call]) == {end}
    assert tokenizer.eos_ids <= allowed(matcher, [*text, begin, *call, end])
    assert end not in allowed(matcher, text), "there is nothing to end"


def test_text_is_free_until_a_call_is_spelled_out_which_is_then_enforced() -> None:
    tokenizer = byte_level(eos_token_id=byte_level().vocab_size - 1)
    matcher = matcher_of(tokenizer, SPELLED_CALLS)
    text = spelled(tokenizer, matcher, "I <add>. <tool_call")
    assert tokenizer.eos_ids <= allowed(matcher, text)
    begun = spelled(tokenizer, matcher, "I <add>. <tool_call>")
    assert allowed(matcher, begun) == {bytes_of("\n")[0]}
    call = f"<tool_call>{CALL}</tool_call>"
    whole = spelled(tokenizer, matcher, f"I <add>. {call}ok <tool_ {call}")
    assert tokenizer.eos_ids <= allowed(matcher, whole)
    assert bytes_of("x")[0] in allowed(matcher, whole)


@pytest.mark.parametrize("name", ["<tool_call>", "<|im_start|>"])
def test_a_forced_call_begins_with_its_mark_also_by_its_id(tokenizer: Tokenizer, name: str) -> None:
    token_id = mark(tokenizer, name)
    for source in (name, f"<[{token_id}]>", f"<[{token_id}-{token_id}]>"):
        matcher = matcher_of(tokenizer, f'start: {source} "hello"')
        assert allowed(matcher, []) == {token_id}
        assert token_id not in allowed(matcher, [token_id])
    gbnf = matcher_of(tokenizer, f'root ::= <[{token_id}]> "hello"', GrammarKind.GBNF)
    assert allowed(gbnf, []) == {token_id}


def test_thinking_ends_before_what_is_enforced(tokenizer: Tokenizer) -> None:
    source = 'start: /(.|\\n)*/ </think> "\\n"? %json {"type": "boolean"}'
    matcher = matcher_of(tokenizer, source)
    thought = bytes_of("Hm, { is a brace.")
    end = mark(tokenizer, "</think>")
    assert reads(matcher, [*thought, end, *bytes_of("true")]) == len(thought) + 5
    assert tokenizer.eos_ids.isdisjoint(allowed(matcher, thought))
    assert allowed(matcher, [*thought, end, *bytes_of("true")]) == set(tokenizer.eos_ids)


def test_only_what_a_grammar_names_is_a_mark_in_it(tokenizer: Tokenizer) -> None:
    think, end = mark(tokenizer, "<think>"), mark(tokenizer, "</think>")
    plain = matcher_of(tokenizer, "<think>[a-z]*</think>", GrammarKind.REGEX)
    assert think in allowed(plain, []), "it is text like any other here"
    assert end in allowed(plain, [think, *bytes_of("x")])
    quoted = matcher_of(tokenizer, 'start: "<think>" /<.think>/ // <think>\n')
    assert think in allowed(quoted, [])


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ('{"type": "string"}', GrammarKind.JSON_SCHEMA),
        ('"(.|\\n)*"', GrammarKind.REGEX),
        ('root ::= "\\"" .* "\\""', GrammarKind.GBNF),
    ],
)
def test_no_text_lets_a_control_token_or_the_end_through(
    tokenizer: Tokenizer, source: str, kind: GrammarKind
) -> None:
    matcher = matcher_of(tokenizer, source, kind)
    within = allowed(matcher, bytes_of('"a <|im_end|>'))
    control = {token.token_id for token in tokenizer.control_tokens} | tokenizer.eos_ids
    assert len(control) == 3
    assert within.isdisjoint(control)


def test_every_token_that_ends_a_reply_may_end_a_grammar(tokenizer: Tokenizer) -> None:
    assert len(tokenizer.eos_ids) > 1
    matcher = matcher_of(tokenizer, "ab*", GrammarKind.REGEX)
    assert allowed(matcher, bytes_of("a")) == {*tokenizer.eos_ids, bytes_of("b")[0]}


def test_its_place_is_a_function_of_the_reply(tokenizer: Tokenizer) -> None:
    ids = bytes_of('{"name": "add", "n": 1234}')
    schema = (ADD, GrammarKind.JSON_SCHEMA)
    once = matcher_of(tokenizer, *schema)
    step_by_step = [allowed(once, ids[:count]) for count in range(len(ids) + 1)]
    again = matcher_of(tokenizer, *schema)
    order = np.random.default_rng(3).permutation(len(ids) + 1).tolist()
    for count in order:  # forward, back, and the same again
        assert allowed(again, ids[:count]) == step_by_step[count]
        assert allowed(again, ids[:count]) == step_by_step[count]


def test_what_must_come_is_spelled_with_the_models_own_tokens(tokenizer: Tokenizer) -> None:
    matcher = matcher_of(tokenizer, 'start: "hello world"')
    hello, *_ = tokenizer.encode("hello world")
    assert tokenizer.token_bytes(hello) == b"hello"
    assert allowed(matcher, []) == {hello}


def test_a_tokenizer_that_puts_a_space_before_each_text_follows_a_grammar() -> None:
    tokenizer = sentencepiece()
    matcher = matcher_of(tokenizer, 'start: "hello" " " "wo"')
    ids: list[int] = []
    while not (found := allowed(matcher, ids)) <= tokenizer.eos_ids:
        ids.append(min(found))
    assert b"".join(map(tokenizer.token_bytes, ids)) == b"hello wo"


def test_a_vocabulary_without_an_end_of_reply_is_refused() -> None:
    tokenizer = byte_level(controls=())
    assert not tokenizer.eos_ids
    with pytest.raises(InvalidRequest, match="no token that ends a reply"):
        matcher_of(tokenizer, "start: /a/")


@pytest.mark.parametrize(
    "source",
    [
        "start: a0\n" + "".join(f"a{i}: a{i + 1}\n" for i in range(300)) + "a300: /x/",
        "start: a\na: a a | /x/",
    ],
    ids=["a chain", "ambiguous"],
)
def test_odd_grammars_are_followed(tokenizer: Tokenizer, source: str) -> None:
    assert allowed(matcher_of(tokenizer, source), []) == set(bytes_of("x"))


def test_a_grammar_that_takes_too_much_ends_with_words(tokenizer: Tokenizer) -> None:
    matcher = matcher_of(tokenizer, "start: a{1,100000}\na: b{1,100000}\nb: /x/{1,100000}")
    ids = bytes_of("x" * 40)
    for count in range(len(ids)):
        matcher.follow(ids[:count])
    assert isinstance(matcher.error, InvalidRequest)
    assert "grammar cannot be followed any further after" in str(matcher.error)
    assert "make it simpler" in str(matcher.error)


SCRAPS = (
    *"abz019 \n\t\"'\\/|*+?(){}[]<>:=,.-_^~&#$%!@",
    *("start: ", "root ::= ", "A: ", "a: ", "/[a-z]+/", '"x"', "%json {", "%ignore ", "%import common.INT"),
    *('{"type": ', '"object"', '"properties": ', '"$ref": "#"', '"pattern": "', '"enum": [', "1e999"),
    *("<|im_end|>", "<[5]>", "<[0-300]>", "{2,3}", "(?i)", "\\d", "\\p{L}", "\u00e9", "\U0001f600", "[lazy]"),
)  # fmt: skip


def scrap(dice: Random, kind: GrammarKind) -> str:
    """Something like a grammar."""
    begin = {GrammarKind.LARK: "start: ", GrammarKind.GBNF: "root ::= "}.get(kind, "")
    return begin + "".join(dice.choice(SCRAPS) for _ in range(dice.randint(1, 12)))


@pytest.mark.parametrize("kind", GrammarKind)
def test_anything_is_followed_or_refused_with_words(
    tokenizer: Tokenizer, kind: GrammarKind
) -> None:
    dice, followed = Random(5), 0
    for _ in range(300):
        source = scrap(dice, kind)
        try:
            matcher = matcher_of(tokenizer, source, kind)
        except InvalidRequest:  # and nothing else
            continue
        followed += 1
        ids: list[int] = []
        while len(ids) < 20 and matcher.error is None:
            found = allowed(matcher, ids) - tokenizer.eos_ids
            if not found:
                break
            ids.append(dice.choice(sorted(found)))
            matcher.follow(ids)
    assert followed > 5 or kind is GrammarKind.JSON_SCHEMA
