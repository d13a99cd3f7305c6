"""Replies of every family are told apart, however they are cut; what is no call is text, and nothing fails."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from engine.text.replies.context import ReplyContext
from engine.text.replies.families import FAMILIES, family_of
from engine.text.replies.json_families import GENERIC
from engine.text.replies.marks import Marks
from engine.text.replies.parts import ID_CHARS, MAX_HELD_SPACE, Parts
from engine.text.replies.reader import Reading
from engine.text.replies.reply_format import ReplyFormat, ReplyParser, ReplyPlan
from engine.text.replies.thinking import thinking_of
from fakes.reply_samples import SAMPLES, TOOLS, Sample

LONGEST_TAG = 24
"""Of a tag that is spelled out and breaks off, nobody can know that it is one."""
every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.family.name)


@dataclass
class Heard:
    """What a client has put together from the parts."""

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, str, str]] = field(default_factory=list)

    def hear(self, parts: Parts) -> None:
        self.text += parts.text
        self.reasoning += parts.reasoning
        for delta in parts.calls:
            if delta.name:
                assert delta.index == len(self.calls)
                assert delta.call_id
                self.calls.append((delta.call_id, delta.name, ""))
            else:
                assert delta.arguments
                assert not delta.call_id
            call_id, name, arguments = self.calls[delta.index]
            self.calls[delta.index] = (call_id, name, arguments + delta.arguments)

    @property
    def everything(self) -> str:
        calls = "".join(call_id + name + arguments for call_id, name, arguments in self.calls)
        return self.text + self.reasoning + calls


def format_of(source: str) -> ReplyFormat:
    """As for a vocabulary without control tokens."""
    family = family_of(source)
    thinking = family.thinking
    if thinking is None and not family.has_own_reasoning:
        thinking = thinking_of(source, lambda _: False)
    return ReplyFormat(family=family, thinking=thinking, marks=Marks(), marks_with_tools=Marks())


def parser_of(sample: Sample, *, most_calls: int | None = None) -> ReplyParser:
    plan = ReplyPlan(tools=TOOLS, is_thinking=sample.is_thinking, most_calls=most_calls)
    return ReplyParser(format_of(sample.family.source), plan, seed="r")


def hear(parser: ReplyParser, pieces: Iterable[str]) -> Heard:
    heard = Heard()
    for piece in pieces:
        heard.hear(parser.push(piece))
    heard.hear(parser.finish())
    return heard


def cut(text: str, places: Iterable[int]) -> list[str]:
    return [text[a:b] for a, b in pairwise([0, *sorted(places), len(text)])]


@every_sample
def test_a_reply_means_what_its_family_means(sample: Sample) -> None:
    assert family_of(sample.family.source).name == sample.family.name
    heard = hear(parser_of(sample), [sample.reply])
    assert (heard.text, heard.reasoning) == (sample.text, sample.reasoning)
    calls = [(name, json.loads(arguments)) for _, name, arguments in heard.calls]
    assert calls == list(sample.calls)
    ids = [call_id for call_id, _, _ in heard.calls]
    assert len(set(ids)) == len(ids)
    assert tuple(ids[: len(sample.ids)]) == sample.ids
    assert sample.ids or all(len(each) == ID_CHARS for each in ids)


@every_sample
def test_a_call_that_must_be_made_is_no_text_wherever_it_is_cut(sample: Sample) -> None:
    if sample.text or not sample.calls:
        return
    plan = ReplyPlan(tools=TOOLS, is_thinking=sample.is_thinking, must_call=True)
    for end in range(len(sample.reply)):
        begun = sample.reply[:end]
        heard = hear(ReplyParser(format_of(sample.family.source), plan, seed="r"), begun)
        assert heard.text.strip() == "", begun


@every_sample
def test_cuts_change_nothing(sample: Sample) -> None:
    whole = hear(parser_of(sample), [sample.reply])
    assert hear(parser_of(sample), sample.reply) == whole
    for place in range(len(sample.reply)):
        assert hear(parser_of(sample), cut(sample.reply, [place])) == whole
    dice = random.Random(5)
    for _ in range(50):
        places = dice.choices(range(len(sample.reply)), k=dice.randrange(9))
        assert hear(parser_of(sample), cut(sample.reply, places)) == whole


def test_every_family_has_a_sample() -> None:
    assert {sample.family.name for sample in SAMPLES} == {
        each.name for each in (*FAMILIES, GENERIC)
    }


@pytest.mark.parametrize(
    "sample",
    [sample for sample in SAMPLES if sample.calls and not sample.is_told_whole],
    ids=lambda sample: sample.family.name,
)
def test_arguments_come_as_they_are_written(sample: Sample) -> None:
    parser = parser_of(sample)
    last = max(sample.reply.rfind("}"), sample.reply.rfind("</"))
    heard = Heard()
    for piece in sample.reply[: last - 3]:
        heard.hear(parser.push(piece))
    assert heard.calls


@every_sample
def test_a_reply_that_breaks_off_keeps_what_it_said(sample: Sample) -> None:
    whole = hear(parser_of(sample), [sample.reply])
    for place in range(len(sample.reply)):
        heard = hear(parser_of(sample), [sample.reply[:place]])
        assert len(heard.calls) <= len(whole.calls)
        for mine, full in zip(heard.calls, whole.calls, strict=False):
            assert mine[:2] == full[:2]
            assert full[2].startswith(mine[2][:-LONGEST_TAG])


PIECES = [
    "\n", " ", "word", '"', "\\", "{", "}", "[", "]", ":", ",", ", ", "null", "7", '"name": ', '"arguments": ',
    '"parameters": ', '{"name": "now", "arguments": {}}', "get_weather", "now", '"city": "x"', "```json\n", "```",
    "é日", "<", ">", "</", "|>", "<|", "all\n",
]  # fmt: skip


def evil_reply(dice: random.Random, sample: Sample) -> str:
    """Pieces of a sample and of JSON, shuffled."""
    size = len(sample.reply)
    parts = []
    for _ in range(dice.randrange(1, 12)):
        if dice.random() < 0.5:
            begin = dice.randrange(size)
            parts.append(sample.reply[begin : begin + dice.randrange(1, 60)])
        else:
            parts.append(dice.choice(PIECES))
    return "".join(parts)


@every_sample
def test_no_reply_makes_a_parser_fail_and_cuts_never_matter(sample: Sample) -> None:
    dice = random.Random(sample.reply)
    for _ in range(150):
        text = evil_reply(dice, sample)
        whole = hear(parser_of(sample), [text])
        assert hear(parser_of(sample), text) == whole
        places = dice.choices(range(len(text) + 1), k=dice.randrange(6))
        assert hear(parser_of(sample), cut(text, places)) == whole


MAY_BE_LOST = ('"type": "', '"id": ', ', "id', '"tool_call_id": "', ">function<")
"""What a call has beside its name and arguments."""


@pytest.mark.parametrize(
    "sample",
    [sample for sample in SAMPLES if "<|channel|>" not in sample.reply],
    ids=lambda sample: sample.family.name,
)
def test_words_are_never_lost(sample: Sample) -> None:
    """A word put anywhere into a reply comes out somewhere, but for where a format keeps house."""
    dice = random.Random(3)
    for place in range(0, len(sample.reply), 2):
        beside = sample.reply[max(place - 24, 0) : place + 24]
        if any(word in beside for word in MAY_BE_LOST):
            continue
        for end in (len(sample.reply), dice.randrange(place, len(sample.reply) + 1)):
            text = sample.reply[:place] + "zebra" + sample.reply[place:end]
            assert "zebra" in hear(parser_of(sample), [text]).everything, text


def test_text_under_a_broken_header_is_not_lost() -> None:
    reply = format_of("<|channel|><|message|>commentary")
    for text in (
        "<|channel|>final<|message>Hello there, zebra",
        "<|channel|>final Hello zebra<|end|>",
        "zebra<|channel|>final<|message|>x",
        "<|channel|>fi<|message|>zebra",
        "<|channel|>commentary to=<|message|>zebra",
        "<|channel|>final" + "y" * 300 + "zebra",
    ):
        heard = hear(ReplyParser(reply, ReplyPlan(tools=TOOLS), seed="r"), [text])
        assert "zebra" in heard.text
    assert (
        hear(
            ReplyParser(reply, ReplyPlan(tools=TOOLS), seed="r"),
            ["<|start|>assistant<|channel|>fin"],
        ).text
        == ""
    )


@every_sample
def test_one_call_at_most_where_no_more_are_wanted(sample: Sample) -> None:
    parser = parser_of(sample, most_calls=1)
    heard = hear(parser, sample.reply)
    assert len(heard.calls) == min(len(sample.calls), 1)
    assert parser.is_full == bool(sample.calls)
    if sample.calls:
        assert json.loads(heard.calls[0][2]) == sample.calls[0][1]


@pytest.mark.parametrize(
    "piece", ["word ", " \n", '{"name": "', "<tool_call>", '{"a":[', "\\", "<think>"]
)
def test_long_replies_take_time_in_proportion(piece: str) -> None:
    def seconds(repeats: int) -> float:
        parser = parser_of(SAMPLES[0])
        began = time.thread_time()
        for _ in range(repeats):
            parser.push(piece)
        parser.finish()
        return time.thread_time() - began

    seconds(1000)
    assert seconds(32_000) < 200 * max(seconds(1000), 0.001)


def test_white_space_beside_calls_and_reasoning_is_no_text() -> None:
    sample = SAMPLES[0]
    call = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
    heard = hear(parser_of(sample), [f"<think> \n a \n</think>\n\n{call}\n\n{call}\n"])
    assert (heard.text, heard.reasoning, len(heard.calls)) == ("", "a", 2)
    kept = " " * (MAX_HELD_SPACE + 3)
    assert hear(parser_of(sample), ["x", kept, call]).text == "x   "
    assert hear(parser_of(sample), ["x  \n"]).text == "x  \n"


def test_without_tools_calls_are_text() -> None:
    reply = "<think>a</think>b <tool_call>{}</tool_call>"
    parser = ReplyParser(format_of(SAMPLES[0].family.source), ReplyPlan(), seed="r")
    heard = hear(parser, reply)
    assert (heard.text, heard.reasoning) == ("b <tool_call>{}</tool_call>", "a")


def test_a_later_tag_of_reasoning_is_text() -> None:
    heard = hear(parser_of(SAMPLES[0]), ["I write <think>x</think>."])
    assert (heard.text, heard.reasoning) == ("I write <think>x</think>.", "")


def test_a_reply_goes_on_with_what_had_begun() -> None:
    plan = ReplyPlan(tools=TOOLS, is_thinking=True, begun="half a ")
    parser = ReplyParser(format_of(SAMPLES[0].family.source), plan, seed="r")
    heard = hear(parser, ["thought</think>said"])
    assert (heard.text, heard.reasoning) == ("said", "thought")


def test_the_ids_of_calls_are_those_of_their_reply() -> None:
    sample = SAMPLES[1]
    first = hear(parser_of(sample), [sample.reply]).calls
    again = hear(parser_of(sample), sample.reply).calls
    assert first == again
    other = ReplyParser(format_of(sample.family.source), ReplyPlan(tools=TOOLS), seed="other")
    assert {call[0] for call in hear(other, [sample.reply]).calls}.isdisjoint(c[0] for c in first)


def test_a_parser_that_fails_leaves_the_rest_as_text(caplog: pytest.LogCaptureFixture) -> None:
    def broken(context: ReplyContext) -> Reading[None]:
        yield from context.reader.take("a")
        raise ZeroDivisionError

    reply = format_of("nothing")
    reply = replace(reply, family=replace(reply.family, read=broken))
    heard = hear(ReplyParser(reply, ReplyPlan(tools=TOOLS), seed="r"), ["", "a", "bc", " d "])
    assert heard.text == "bc d "
    assert "could not be told apart" in caplog.text
    caplog.clear()
