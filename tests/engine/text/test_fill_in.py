"""The three tokens around a gap are found as a file lists them, or by the names that families give them."""

from __future__ import annotations

import pytest

from engine.text.added_tokens import AddedToken
from engine.text.fill_in import FillIn, find_fill_in
from fakes.tiny_text import byte_level

NOT_LISTED = (None, None, None)


def added(*names: str) -> list[AddedToken]:
    return [AddedToken(token_id=n, content=name, control=True) for n, name in enumerate(names, 7)]


@pytest.mark.parametrize(
    "names",
    [
        ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
        ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
        ("\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>"),
    ],
)
def test_names_of_families_are_known(names: tuple[str, ...]) -> None:
    assert find_fill_in(added(*names), NOT_LISTED) == FillIn(7, 8, 9)


def test_what_the_file_lists_goes_before_names() -> None:
    tokens = added("<fim_prefix>", "<fim_suffix>", "<fim_middle>")
    assert find_fill_in(tokens, (1, None, 3)) == FillIn(1, 8, 3)


def test_two_of_three_are_none() -> None:
    assert find_fill_in(added("<fim_prefix>", "<fim_suffix>"), NOT_LISTED) is None


def test_a_gguf_file_lists_them_by_old_and_new_keys() -> None:
    tokenizer = byte_level(fim_pre_token_id=4, suffix_token_id=5, fim_mid_token_id=6)
    assert tokenizer.fill_in == FillIn(4, 5, 6)
    assert byte_level().fill_in is None
