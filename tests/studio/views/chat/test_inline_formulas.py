"""Formulas are found among words; prices and code are left alone."""

from __future__ import annotations

import pytest

from studio.views.chat.inline_formulas import FIRST_MARK, cut_formulas


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        (r"let $x$ be \(y\) and $$z$$ or \[w\]", ["x", "y", "z", "w"]),
        ("cost $5 and $10", []),
        ("$5-$10", []),
        ("US$100 to US$200", []),
        ("a `$x$` b ``$y` $`` c $z$", ["z"]),
        (r"a \$5 and $b$", ["b"]),
        ("**$x^2$**", ["x^2"]),
        ("$ x$ and $x $", []),
        ("| $|a|$ |", ["|a|"]),
        ("no math at all", []),
        ("$x$", ["x"]),
    ],
)
def test_formulas_are_found(text: str, formulas: list[str]) -> None:
    marked, found = cut_formulas(text)
    assert found == formulas
    assert [ord(c) - FIRST_MARK for c in marked if ord(c) >= FIRST_MARK] == list(range(len(found)))


def test_text_with_private_characters_of_its_own_is_left_alone() -> None:
    text = f"{chr(FIRST_MARK)} and $x$"
    assert cut_formulas(text) == (text, [])
