"""LaTeX becomes pictures in the colour of the text; what is none stays source."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QWidget

from studio.models.settings import Theme as ThemeChoice
from studio.views.chat import typesetting
from studio.views.chat.formula_view import FormulaView
from studio.views.chat.formulas import MAX_LATEX_CHARS
from studio.views.chat.kit import Kit
from studio.views.chat.typesetting import Formula, Typesetter, Unready, typeset


def colors_in(image: QImage) -> set[str]:
    return {
        image.pixelColor(x, y).name()
        for x in range(image.width())
        for y in range(image.height())
        if image.pixelColor(x, y).alpha() == 255
    }


@pytest.mark.parametrize("latex", ["x", r"\frac{a}{b}", r"\begin{pmatrix}a&b\\c&d\end{pmatrix}"])
def test_latex_is_typeset(latex: str) -> None:
    made = typeset(latex, is_display=True)
    assert isinstance(made, Formula)
    assert made.width > 0.3
    assert made.height > 0.3


@pytest.mark.parametrize("latex", [r"\frac{a", r"\nosuch{x}", "x^", "&", r"\left( x", "{"])
def test_bad_latex_is_said_to_be_bad(latex: str) -> None:
    assert typeset(latex, is_display=True) is Unready.BAD


def test_a_fraction_goes_below_the_line_and_a_letter_does_not() -> None:
    fraction, letter = (typeset(s, is_display=False) for s in (r"\frac{a}{b}", "x"))
    assert isinstance(fraction, Formula)
    assert isinstance(letter, Formula)
    assert fraction.depth > 0.3 > 0.1 > letter.depth


def test_a_formula_is_drawn_in_one_colour_once_it_is_ready(kit: Kit, qtbot: Any) -> None:
    formulas = kit.formulas
    with qtbot.waitSignal(formulas.ready, timeout=60_000):
        assert formulas.get("x+1", is_display=False) is Unready.TYPESETTING
        assert formulas.inline_image("x+1", 40, QColor("red"), 1.0) is None
    assert isinstance(formulas.get("x+1", is_display=False), Formula)
    image = formulas.inline_image("x+1", 40, QColor("red"), 1.0)
    assert image is not None
    assert colors_in(image) == {"#ff0000"}
    assert formulas.inline_image("x+1", 40, QColor("red"), 1.0) is image


def test_what_is_too_long_or_empty_is_never_typeset(kit: Kit) -> None:
    assert kit.formulas.get("x" * (MAX_LATEX_CHARS + 1), is_display=True) is Unready.BAD
    assert kit.formulas.get("", is_display=True) is Unready.BAD


def test_a_formula_of_its_own_line_shows_its_source_until_it_is_whole(
    kit: Kit, page: QWidget, qtbot: Any
) -> None:
    view = FormulaView(kit, page)
    view.resize(600, 60)
    view.set_latex("x^2 +", is_whole=False)
    assert not view.is_drawn
    with qtbot.waitSignal(kit.formulas.ready, timeout=60_000):
        view.set_latex("x^2 + 1", is_whole=True)
        assert not view.is_drawn
    assert view.is_drawn
    assert view.accessibleDescription() == "x^2 + 1"
    before = view.grab().toImage()
    kit.theme.apply(ThemeChoice.DARK, 14)
    assert view.grab().toImage() != before


def test_a_wide_formula_is_drawn_smaller_and_a_bad_one_as_source(
    kit: Kit, page: QWidget, qtbot: Any
) -> None:
    wide, bad = FormulaView(kit, page), FormulaView(kit, page)
    with qtbot.waitSignal(kit.formulas.ready, timeout=60_000):
        wide.set_latex("+".join(["abc"] * 30), is_whole=True)
        wide.heightForWidth(1)
    assert wide.heightForWidth(300) < wide.heightForWidth(3000)
    bad.set_latex(r"\frac{a", is_whole=True)
    bad.heightForWidth(300)
    qtbot.waitUntil(lambda: kit.formulas.get(r"\frac{a", is_display=True) is Unready.BAD)
    assert not bad.is_drawn
    assert bad.heightForWidth(300) > 10


def test_the_child_answers_ends_when_told_and_is_started_anew_after_a_breakdown() -> None:
    typesetter = Typesetter()
    made = typesetter.typeset("x^2", is_display=False)
    assert made == typeset("x^2", is_display=False)
    assert typesetter._child is not None
    typesetter._child[0].kill()
    typesetter._child[0].join()
    assert typesetter.typeset("x^2", is_display=False) == made
    process, _ = typesetter._child
    typesetter.close()
    assert not process.is_alive()
    assert typesetter.typeset("x^2", is_display=False) is Unready.BAD


def test_a_formula_over_which_the_child_breaks_down_is_bad_and_the_next_one_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(typesetting, "_PATIENCE_S", 0.0)
    typesetter = Typesetter()
    assert typesetter.typeset("x", is_display=False) is Unready.BAD, "nobody waits for ever"
    monkeypatch.undo()
    assert isinstance(typesetter.typeset("x", is_display=False), Formula)
    typesetter.close()
