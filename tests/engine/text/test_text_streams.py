"""Text as it comes: whole characters, and stop strings found wherever tokens are cut."""

from __future__ import annotations

import random

import pytest

from engine.text.detokenizer import Detokenizer
from engine.text.stop_strings import StopMatcher
from engine.text.text_stream import TextStream
from engine.text.tokenizer import Tokenizer
from fakes.tiny_text import byte_level, sentencepiece


@pytest.fixture(params=["byte_level", "sentencepiece"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return byte_level() if request.param == "byte_level" else sentencepiece()


def byte_tokens(tokenizer: Tokenizer, data: bytes) -> list[int]:
    by_byte = {
        tokenizer.token_bytes(i): i
        for i in reversed(range(tokenizer.vocab_size))
        if len(tokenizer.token_bytes(i)) == 1
    }
    return [by_byte[data[place : place + 1]] for place in range(len(data))]


def streamed(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    detokenizer = Detokenizer(tokenizer)
    return [*map(detokenizer.push, ids), detokenizer.flush()]


def test_characters_come_whole(tokenizer: Tokenizer) -> None:
    ids = byte_tokens(tokenizer, "aé日😀".encode())
    assert streamed(tokenizer, ids) == ["a", "", "é", "", "", "日", "", "", "", "😀", ""]


def test_a_character_that_is_cut_off_shows_at_the_end(tokenizer: Tokenizer) -> None:
    assert streamed(tokenizer, byte_tokens(tokenizer, "x😀".encode()[:-1]))[-1] == "\ufffd"


def test_control_tokens_show_as_nothing(tokenizer: Tokenizer) -> None:
    controls = [token.token_id for token in tokenizer.control_tokens]
    first, *rest = byte_tokens(tokenizer, "é!".encode())
    assert "".join(streamed(tokenizer, [*controls, first, *controls, *rest])) == "é!"


def test_the_stream_is_the_decoded_whole(tokenizer: Tokenizer) -> None:
    dice = random.Random(5)
    for _ in range(2000):
        ids = [dice.randrange(tokenizer.vocab_size) for _ in range(dice.randrange(12))]
        pieces = streamed(tokenizer, ids)
        assert "".join(pieces) == tokenizer.decode(ids)
        assert not any("\ufffd" in piece for piece in pieces) or "\ufffd" in tokenizer.decode(ids)


def test_invalid_bytes_become_what_a_whole_decode_makes_of_them(tokenizer: Tokenizer) -> None:
    dice = random.Random(6)
    bad = [
        b"\xf0\x9f",
        b"\xff",
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\xe3\x81",
        b"a",
        "日".encode(),
        b"\x80",
    ]
    for _ in range(500):
        data = b"x" + b"".join(dice.choices(bad, k=5))
        ids = byte_tokens(tokenizer, data)
        assert "".join(streamed(tokenizer, ids)) == data.decode("utf-8", "replace")


def test_the_space_before_a_text_goes_unless_a_text_goes_on() -> None:
    tokenizer = sentencepiece()
    (hello,) = tokenizer.encode("hello")
    assert Detokenizer(tokenizer).push(hello) == "hello"
    going_on = Detokenizer(tokenizer, continues=True)
    assert going_on.push(hello) + going_on.push(hello) == " hello hello"
    detokenizer = Detokenizer(tokenizer)
    assert [detokenizer.push(i) for i in (tokenizer.bos_id or 0, hello, hello)] == [
        "",
        "hello",
        " hello",
    ]


def expected(text: str, stops: list[str]) -> tuple[str, str]:
    """The definition: the first place where a stop string is complete, cut before the longest there."""
    for end in range(1, len(text) + 1):
        complete = [stop for stop in stops if text[:end].endswith(stop)]
        if complete:
            longest = max(complete, key=len)
            return text[: end - len(longest)], longest
    return text, ""


def matched(pieces: list[str], stops: list[str]) -> tuple[str, str]:
    matcher = StopMatcher(stops)
    shown, stopped = "", False
    for piece in pieces:
        result = matcher.push(piece)
        shown += result.text
        stopped = result.stopped
    assert stopped is bool(matcher.found)
    return shown + matcher.flush(), matcher.found


def splits(text: str) -> list[list[str]]:
    """All ways to cut a short text in pieces."""
    if not text:
        return [[]]
    return [[text[:n], *rest] for n in range(1, len(text) + 1) for rest in splits(text[n:])]


@pytest.mark.parametrize(
    ("text", "stops"),
    [
        ("Hello END x", ["END"]),
        ("aaab", ["aab"]),
        ("ababac", ["abac"]),
        ("xabcd", ["abcd", "c"]),
        ("xabcd", ["bcd", "cd", "d!"]),
        ("no stop", ["stopped", "o s!"]),
        ("日本語END", ["本語E"]),
        ("aaaa", ["aa", "aaa"]),
        ("\n\nUser:", ["\n\nUser:", "\n\n\n"]),
    ],
)
def test_stop_strings_are_found_however_the_text_is_cut(text: str, stops: list[str]) -> None:
    for pieces in splits(text):
        assert matched(pieces, stops) == expected(text, stops), pieces


def test_random_texts_stop_where_the_definition_says() -> None:
    dice = random.Random(8)
    for _ in range(3000):
        text = "".join(dice.choices("ab", k=dice.randrange(12)))
        stops = [
            "".join(dice.choices("ab", k=dice.randrange(1, 6))) for _ in range(dice.randrange(4))
        ]
        pieces = []
        rest = text
        while rest:
            cut = dice.randrange(len(rest) + 1)
            pieces.append(rest[:cut])
            rest = rest[cut:]
        assert matched(pieces, stops) == expected(text, stops), (text, stops)


def test_only_a_possible_beginning_is_held_back() -> None:
    matcher = StopMatcher(["</end>", "nd!"])
    assert matcher.push("all of this</e").text == "all of this"
    assert matcher.push("x").text == "</ex"
    assert matcher.push("and").text == "a"
    assert matcher.push("?").text == "nd?"
    assert matcher.flush() == ""


def test_after_a_stop_nothing_comes() -> None:
    matcher = StopMatcher(["#"])
    assert matcher.push("a#b").text == "a"
    again = matcher.push("c#d")
    assert (again.text, again.stopped) == ("", True)
    assert matcher.flush() == ""


def test_a_long_stop_string_costs_one_step_a_character() -> None:
    stop = "a" * 50_000 + "b"
    matcher = StopMatcher([stop])
    assert matcher.push("a" * 100_000).text == "a" * 50_000
    assert matcher.push("b").stopped


def test_a_stream_stops_inside_a_token_and_across_tokens(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("hello world")
    for stop in ("lo", "o w", "w", "hello world", "d"):
        stream = TextStream(tokenizer, [stop])
        steps = [stream.push(token_id) for token_id in ids]
        assert steps[-1].has_ended
        shown = "".join(step.text for step in steps) + stream.finish().text
        assert shown == "hello world".split(stop)[0]


def test_a_stream_without_stop_gives_everything(tokenizer: Tokenizer) -> None:
    stream = TextStream(tokenizer, ["world!"])
    ids = [*tokenizer.encode("hello wörld world"), *byte_tokens(tokenizer, b"\xe6")]
    text = "".join(stream.push(token_id).text for token_id in ids)
    assert text + stream.finish().text == "hello wörld world\ufffd"
