"""A reply's thoughts, text and calls, in the order in which they came."""

from __future__ import annotations

from engine.api import TokenDelta, TokenLogprob, ToolCallDelta
from studio.server.reply_parts import PartKind, ReplyParts, StepKind


def delta(
    text: str = "",
    *,
    reasoning: str = "",
    calls: tuple[ToolCallDelta, ...] = (),
    logprob: float = 0,
) -> TokenDelta:
    logprobs: tuple[TokenLogprob, ...] = ()
    if logprob:
        logprobs = (TokenLogprob(token_id=1, text=text, token_bytes=b"", logprob=logprob),)
    return TokenDelta(
        request_id="a",
        text=text,
        token_ids=(1,),
        reasoning=reasoning,
        tool_calls=calls,
        logprobs=logprobs,
    )


def test_parts_open_and_close_in_turn_and_only_calls_of_one_index_are_one() -> None:
    parts = ReplyParts()
    steps = [
        step
        for each in (
            delta(reasoning="hm"),
            delta(reasoning="m"),
            delta("Let me", reasoning="."),
            delta(" see"),
            delta(calls=(ToolCallDelta(index=0, call_id="c0", name="look"),)),
            delta(calls=(ToolCallDelta(index=0, arguments="{}"),)),
            delta(calls=(ToolCallDelta(index=1, call_id="c1", name="look", arguments="[]"),)),
        )
        for step in parts.add(each)
    ] + parts.close()
    assert [(step.kind, step.part.number) for step in steps if step.kind is not StepKind.GREW] == [
        (kind, number) for number in range(4) for kind in (StepKind.OPENED, StepKind.CLOSED)
    ]
    assert [(part.kind, part.text, part.call_id, part.name) for part in parts.parts] == [
        (PartKind.REASONING, "hmm.", "", ""),
        (PartKind.TEXT, "Let me see", "", ""),
        (PartKind.CALL, "{}", "c0", "look"),
        (PartKind.CALL, "[]", "c1", "look"),
    ]
    assert parts.close() == []
    assert parts.text_of(PartKind.TEXT) == "Let me see"
    assert [call.call_id for call in parts.calls] == ["c0", "c1"]
    assert parts.reasoning_tokens == 3


def test_tokens_that_show_nothing_count_for_what_they_begin() -> None:
    parts = ReplyParts()
    for each in (delta(), delta(reasoning="hm"), delta(), delta("Hi"), delta()):
        parts.add(each)
    assert parts.reasoning_tokens == 2


def test_tokens_without_text_open_no_part_and_their_logprobs_are_kept() -> None:
    parts = ReplyParts()
    assert parts.add(delta(logprob=-1)) == []
    assert [step.kind for step in parts.add(delta("é", logprob=-2))] == [
        StepKind.OPENED,
        StepKind.GREW,
    ]
    parts.add(delta(logprob=-3))
    assert [token.logprob for token in parts.logprobs] == [-1, -2, -3]
    assert [token.logprob for token in parts.parts[0].logprobs] == [-1, -2, -3]
