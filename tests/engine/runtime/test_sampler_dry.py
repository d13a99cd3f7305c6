"""DRY on cases worked out by hand, and against a direct search for repetitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.api import SamplingParams
from engine.errors import InvalidRequest
from engine.runtime.sampling_dry import DryPenalty
from engine.runtime.sampling_repeats import Repeats


def letters(token_id: int) -> bytes:
    """Token 0 is "a", 1 is "b" and so on."""
    return bytes([ord("a") + token_id])


def penalties(text: str, *, vocab: int = 26, **params: object) -> dict[str, float]:
    """What DRY takes from each letter, the penalty's multiplier being 1 and its base 2."""
    settings = {"dry_multiplier": 1.0, "dry_base": 2.0, "dry_sequence_breakers": (), **params}
    dry = DryPenalty(SamplingParams(**settings), letters, vocab_size=vocab)  # type: ignore[arg-type]
    return taken(dry, [ord(c) - ord("a") for c in text])


def taken(dry: DryPenalty, token_ids: list[int]) -> dict[str, float]:
    touch = None if dry.is_off else dry.touch(token_ids)
    if touch is None:
        return {}
    lost = -touch.change(np.zeros(touch.ids.size))
    ids = touch.ids.tolist()
    assert ids == sorted(set(ids))
    return {chr(ord("a") + i): one for i, one in zip(ids, lost.tolist(), strict=True)}


def test_the_token_that_would_extend_a_repetition_is_penalised() -> None:
    # "abc" came before and was followed by "d": three tokens, one more than allowed
    assert penalties("abcdxabc") == {"d": 2.0}


@pytest.mark.parametrize(
    ("text", "expected"), [("cdxc", {}), ("bcdxbc", {"d": 1.0}), ("zabcdxyzabc", {"d": 4.0})]
)
def test_the_penalty_starts_at_the_allowed_length_and_grows_by_the_base(
    text: str, expected: dict[str, float]
) -> None:
    assert penalties(text) == expected


def test_multiplier_base_and_allowed_length_are_used() -> None:
    got = penalties("abcdxabc", dry_multiplier=0.5, dry_base=3.0, dry_allowed_length=1)
    assert got == {"d": 0.5 * 3.0**2}


def test_each_follower_counts_its_own_longest_copy() -> None:
    # "bc" was followed by "d" (after "abc") and "e" (after "xbc"); now the text ends in "xbc"
    assert penalties("abcdxbcexbc") == {"d": 1.0, "e": 2.0}


def test_a_loop_overlapping_itself_counts_at_full_length() -> None:
    assert penalties("aaaaa") == {"a": 2.0**2}
    assert penalties("ababab") == {"a": 2.0**2}


def test_a_repetition_does_not_reach_back_over_a_breaker() -> None:
    assert penalties("abcdxabc", dry_sequence_breakers=("a",)) == {"d": 1.0}
    assert penalties("abcdxabc", dry_sequence_breakers=("b",)) == {}
    assert penalties("abcdxabc", dry_sequence_breakers=("c",)) == {}


def test_a_breaker_is_never_penalised_itself() -> None:
    assert penalties("abcdxabc", dry_sequence_breakers=("d",)) == {}


def test_a_breaker_may_span_tokens() -> None:
    assert penalties("wxyzabcdqwxyzabc", dry_sequence_breakers=("yz",)) == {"d": 2.0}
    assert penalties("wxyzabcdqwxyzabc", dry_sequence_breakers=("xyza",)) == {"d": 1.0}
    assert penalties("wxyzabcdqwxyzabc", dry_sequence_breakers=("xyzb",)) == {"d": 2.0**5}


def test_the_last_of_several_breakers_counts() -> None:
    assert penalties("wxyzabcdqwxyzabc", dry_sequence_breakers=("wxyz", "x", "ya")) == {"d": 2.0}


def test_a_breaker_within_a_tokens_text_ends_the_repetition_at_that_token() -> None:
    texts = [b"the", b" end.\n", b" so", b" it", b" goes"]
    params = SamplingParams(dry_multiplier=1.0, dry_base=2.0)
    dry = DryPenalty(params, texts.__getitem__, vocab_size=5)
    assert taken(dry, [0, 1, 2, 3, 4, 0, 1, 2, 3]) == {"e": 1.0}


@pytest.mark.parametrize(
    ("last_n", "expected"), [(-1, {"d": 2.0}), (8, {"d": 2.0}), (7, {"d": 1.0}), (6, {}), (0, {})]
)
def test_dry_looks_back_over_the_last_n_tokens_only(
    last_n: int, expected: dict[str, float]
) -> None:
    assert penalties("abcdxabc", dry_penalty_last_n=last_n) == expected


def test_a_multiplier_of_zero_is_off() -> None:
    assert penalties("abcabcabc", dry_multiplier=0.0) == {}


@pytest.mark.parametrize("base", [1.0, 1.75, 100.0])
@pytest.mark.parametrize("text", ["a" * 3000, "xy" + "a" * 160])
@pytest.mark.parametrize("breakers", [(), ("xy", "a breaker that never occurs")])
def test_penalties_of_endless_loops_stay_finite(
    base: float, text: str, breakers: tuple[str, ...]
) -> None:
    params = {"dry_base": base, "dry_multiplier": 100.0, "dry_sequence_breakers": breakers}
    assert 100.0 <= penalties(text, **params)["a"] < math.inf


def test_followers_beyond_the_row_are_skipped() -> None:
    assert penalties("abcdxabcdxabc", vocab=3) == {}


@pytest.mark.parametrize("text", ["", "a"])
def test_texts_too_short_to_repeat_are_left_alone(text: str) -> None:
    assert penalties(text) == {}


def test_empty_or_too_many_breakers_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="empty string"):
        DryPenalty(SamplingParams(dry_sequence_breakers=("\n", "")), letters, vocab_size=9)
    with pytest.raises(InvalidRequest, match="257 strings, allowed are 256"):
        DryPenalty(SamplingParams(dry_sequence_breakers=("\n",) * 257), letters, vocab_size=9)


def test_a_breaker_that_is_no_valid_unicode_just_never_occurs() -> None:
    assert penalties("abcdxabc", dry_sequence_breakers=("\ud800",)) == {"d": 2.0}


def direct_search(text: list[int], breakers: tuple[bytes, ...]) -> dict[int, int]:
    """The longest repetition before each follower, by comparing every pair of places and looking for every breaker."""
    joined = b"".join(map(letters, text))
    breaker_ends = [
        at + len(b) for b in breakers for at in range(len(joined)) if joined.startswith(b, at)
    ]
    limit = len(joined) - max(breaker_ends, default=0)
    found: dict[int, int] = {}
    for end in range(1, len(text)):
        length = 0
        while length < end and length < limit and text[end - 1 - length] == text[-1 - length]:
            length += 1
        if length:
            found[text[end]] = max(length, found.get(text[end], 0))
    return found


def longest_repeats(text: list[int]) -> dict[int, int]:
    """The same from the lengths that are kept up to date."""
    found: dict[int, int] = {}
    for token_id, length in zip(*Repeats().follow(text), strict=True):
        if length:
            found[int(token_id)] = max(int(length), found.get(int(token_id), 0))
    return found


def test_random_texts_agree_with_a_direct_search() -> None:
    rng = np.random.default_rng(5)
    for _ in range(400):
        letters_used = int(rng.integers(1, 5))
        text = rng.integers(0, letters_used, int(rng.integers(0, 60))).tolist()
        assert longest_repeats(text) == direct_search(text, ())
        breaker = b"".join(
            map(letters, rng.integers(0, letters_used, int(rng.integers(1, 6))).tolist())
        )
        expected = {
            chr(ord("a") + token): 2.0 ** (length - 2)
            for token, length in direct_search(text, (breaker,)).items()
            if length >= 2 and letters(token) != breaker
        }
        as_text = b"".join(map(letters, text)).decode()
        assert penalties(as_text, dry_sequence_breakers=(breaker.decode(),)) == expected
