"""Logprobs, usage and the end of replies, in their wire shapes."""

from __future__ import annotations

import math
from dataclasses import replace

from engine.api import Finished, FinishReason, TokenDelta, TokenLogprob, Usage
from studio.server.completion_reply import CompletionReply, CompletionTelling
from studio.server.replies import (
    ChatReply,
    ReplyHead,
    total_usage,
)
from studio.server.reply_parts import ReplyParts
from studio.server.reply_shape import ReplyEnd

HEAD = ReplyHead(reply_id="x-1", created_s=7, model="tiny")


def token(text: str, logprob: float, top: tuple[TokenLogprob, ...] = ()) -> TokenLogprob:
    return TokenLogprob(token_id=1, text=text, token_bytes=text.encode(), logprob=logprob, top=top)


def delta(text: str, *tokens: TokenLogprob) -> TokenDelta:
    return TokenDelta(request_id="x-1-0", text=text, token_ids=(1,) * len(tokens), logprobs=tokens)


def usage(prompt: int, completion: int, cached: int = 0) -> Usage:
    return Usage(
        prompt_tokens=prompt,
        cached_tokens=cached,
        completion_tokens=completion,
        queued_s=0,
        prefill_s=0,
        decode_s=0,
    )


def whole_reply(*deltas: TokenDelta) -> tuple[list[ReplyParts], ReplyEnd]:
    """A reply of one choice that has ended."""
    parts, end = ReplyParts(), ReplyEnd(usages=(usage(5, len(deltas)),))
    for each in deltas:
        parts.add(each)
    parts.finished = Finished(request_id="x-1-0", reason=FinishReason.STOP, usage=end.usages[0])
    return [parts], end


def test_chat_logprobs_have_tokens_bytes_and_alternatives() -> None:
    shape = ChatReply(HEAD, has_logprobs=True)
    top = (token("é", -0.5), token("e", -math.inf))
    (chunk,) = shape.delta(0, delta("é", token("é", -0.5, top)))
    (choice,) = chunk["choices"]
    assert choice["logprobs"]["content"] == [
        {
            "token": "é",
            "logprob": -0.5,
            "bytes": [0xC3, 0xA9],
            "top_logprobs": [
                {"token": "é", "logprob": -0.5, "bytes": [0xC3, 0xA9]},
                {"token": "e", "logprob": -9999.0, "bytes": [101]},
            ],
        }
    ]


def test_tokens_of_thoughts_are_counted_whole_and_streamed() -> None:
    def part(**told: str) -> TokenDelta:
        return TokenDelta(request_id="x-1-0", token_ids=(1, 2), **{"text": "", **told})

    deltas = (part(), part(reasoning="Hm"), part(), part(reasoning="."), part(), part(text="Yes"))
    parts, end = whole_reply(*deltas)
    whole = ChatReply(HEAD, has_logprobs=False).whole(parts, end)
    assert whole["usage"]["completion_tokens_details"] == {"reasoning_tokens": 8}
    shape = ChatReply(HEAD, has_logprobs=False, includes_usage=True)
    for delta_ in deltas:
        shape.delta(0, delta_)
    finished = parts[0].finished
    assert finished is not None
    *_, last = shape.closing(0, finished, end)
    assert last["usage"] == whole["usage"]


def test_chat_logprobs_without_alternatives_have_an_empty_list() -> None:
    reply = whole_reply(delta("ab", token("a", -1), token("b", -2)))
    whole = ChatReply(HEAD, has_logprobs=True).whole(*reply)
    content = whole["choices"][0]["logprobs"]["content"]
    assert [entry["top_logprobs"] for entry in content] == [[], []]
    assert [entry["logprob"] for entry in content] == [-1, -2]


def test_completion_logprobs_are_four_parallel_lists() -> None:
    tokens = [token("Hi", -0.1, (token("Hi", -0.1), token("Ho", -2))), token(" you", -0.2)]
    reply = whole_reply(delta("Hi you", *tokens))
    whole = CompletionReply(HEAD, CompletionTelling(has_logprobs=True)).whole(*reply)
    assert whole["choices"][0]["logprobs"] == {
        "tokens": ["Hi", " you"],
        "token_logprobs": [-0.1, -0.2],
        "top_logprobs": [{"Hi": -0.1, "Ho": -2}, {}],
        "text_offset": [0, 2],
    }


def test_tokens_that_are_no_whole_characters_are_told_apart_by_their_bytes() -> None:
    first, second, again = (
        TokenLogprob(token_id=i, text="\ufffd", token_bytes=raw, logprob=-i)
        for i, raw in enumerate((b"\xf0\x9f", b"\xe2", b"\xe2"), start=1)
    )
    chosen = replace(first, top=(first, second, again))
    whole = CompletionReply(HEAD, CompletionTelling(has_logprobs=True)).whole(
        *whole_reply(delta("", chosen))
    )
    told = whole["choices"][0]["logprobs"]
    assert told["tokens"] == [r"bytes:\xf0\x9f"]
    assert told["top_logprobs"] == [{r"bytes:\xf0\x9f": -1, r"bytes:\xe2": -2}]


def test_text_offsets_count_on_from_chunk_to_chunk_per_choice() -> None:
    shape = CompletionReply(HEAD, CompletionTelling(has_logprobs=True))

    def offsets(index: int, text: str) -> list[int]:
        (chunk,) = shape.delta(index, delta(text, token(text, -1)))
        return chunk["choices"][0]["logprobs"]["text_offset"]

    assert [offsets(0, "abc"), offsets(1, "x"), offsets(0, "d"), offsets(1, "y")] == [
        [0],
        [0],
        [3],
        [1],
    ]


def test_a_character_cut_over_tokens_counts_once_and_its_parts_begin_where_it_does() -> None:
    pieces = (b"\xf0\x9f", b"\xa6", b"\x84", b" abc", b"", b"\xf0", b"D", "é".encode(), b"!")
    tokens = [
        TokenLogprob(token_id=1, text=raw.decode("utf-8", "replace"), token_bytes=raw, logprob=-1)
        for raw in pieces
    ]
    expected = [0, 0, 0, 1, 5, 5, 5, 7, 8]
    text = b"".join(pieces).decode("utf-8", "replace")
    assert text == "🦄 abc\ufffdDé!"
    reply = whole_reply(*(delta("", each) for each in tokens))
    telling = CompletionTelling(has_logprobs=True)
    whole = CompletionReply(HEAD, telling).whole(*reply)["choices"][0]["logprobs"]
    assert whole["text_offset"] == expected
    shape = CompletionReply(HEAD, telling)
    streamed: list[int] = []
    for each in tokens:
        (chunk,) = shape.delta(0, delta("", each))
        streamed += chunk["choices"][0]["logprobs"]["text_offset"]
    assert streamed == expected


def test_usage_counts_a_prompt_once_for_all_its_choices() -> None:
    usages = (
        usage(10, 1, cached=4),
        usage(10, 2, cached=10),
        usage(20, 3),
        usage(20, 4, cached=20),
    )
    assert total_usage(ReplyEnd(usages=usages, choices_per_prompt=2)) == {
        "prompt_tokens": 30,
        "completion_tokens": 10,
        "total_tokens": 40,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
