"""Both themes are complete, readable and take hold of everything at once."""

from __future__ import annotations

import itertools
import math
from dataclasses import fields
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QDialogButtonBox, QLabel, QWidget

from studio.models.settings import Theme as ThemeChoice
from studio.views.chat.highlighter import CodeColor
from studio.views.dialogs.confirm import Question, confirm
from studio.views.theme import (
    NUM_HUES,
    Colors,
    Theme,
    load_code_colors,
    load_colors,
    load_hues,
    with_high_contrast,
)

BOTH = pytest.mark.parametrize("choice", [ThemeChoice.LIGHT, ThemeChoice.DARK])


def luminance(color: QColor) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [color.redF(), color.greenF(), color.blueF()]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: QColor, other: QColor) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


# Machado, Oliveira and Fernandes 2009, severity 1: how linear RGB looks without red or green cones.
NO_RED = ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052))
NO_GREEN = ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969))
ALL = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def lab(color: QColor, eye: tuple[tuple[float, ...], ...]) -> tuple[float, float, float]:
    """The colour as an eye sees it, in CIE L*a*b* (D65)."""
    parts = (color.redF(), color.greenF(), color.blueF())
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    seen = [min(1.0, max(0.0, sum(k * p for k, p in zip(row, linear, strict=True)))) for row in eye]
    x = (0.4124 * seen[0] + 0.3576 * seen[1] + 0.1805 * seen[2]) / 0.9505
    y = 0.2126 * seen[0] + 0.7152 * seen[1] + 0.0722 * seen[2]
    z = (0.0193 * seen[0] + 0.1192 * seen[1] + 0.9505 * seen[2]) / 1.0888
    fx, fy, fz = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


@BOTH
def test_high_contrast_makes_every_word_and_edge_stand_out(choice: ThemeChoice) -> None:
    colors = with_high_contrast(load_colors(choice))
    for ground in (colors.window, colors.sidebar, colors.raised, colors.selected, colors.hover):
        assert contrast(colors.text, ground) >= 7
        assert contrast(colors.secondary, ground) >= 7
        assert contrast(colors.border, ground) >= 3
        assert contrast(colors.disabled, ground) >= 4.4


@BOTH
def test_hues_stand_out_and_differ_for_every_eye(choice: ThemeChoice) -> None:
    hues, colors = load_hues(choice), load_colors(choice)
    assert len(hues) == NUM_HUES
    for ground in (colors.window, colors.sidebar):
        assert min(contrast(hue, ground) for hue in hues) >= 3
    for eye in (ALL, NO_RED, NO_GREEN):
        pairs = itertools.combinations([lab(hue, eye) for hue in hues], 2)
        assert min(math.dist(one, other) for one, other in pairs) > 15


@BOTH
def test_every_token_is_a_colour(choice: ThemeChoice) -> None:
    colors = load_colors(choice)
    assert all(getattr(colors, field.name).isValid() for field in fields(Colors))


@BOTH
@pytest.mark.parametrize("ground", ["window", "sidebar", "raised", "bubble", "code"])
@pytest.mark.parametrize("text", ["text", "secondary", "accent", "waiting", "failed"])
def test_text_is_readable(choice: ThemeChoice, ground: str, text: str) -> None:
    colors = load_colors(choice)
    assert contrast(getattr(colors, text), getattr(colors, ground)) >= 4.5


@BOTH
@pytest.mark.parametrize("ground", ["accent", "accent_hover"])
def test_buttons_are_readable(choice: ThemeChoice, ground: str) -> None:
    colors = load_colors(choice)
    assert contrast(colors.on_accent, getattr(colors, ground)) >= 4.5


@BOTH
@pytest.mark.parametrize("text", ["text", "secondary", "accent", "waiting", "failed"])
@pytest.mark.parametrize("ground", ["selected", "hover"])
def test_rows_are_readable(choice: ThemeChoice, text: str, ground: str) -> None:
    colors = load_colors(choice)
    assert contrast(getattr(colors, text), getattr(colors, ground)) >= 4.5


def test_a_choice_dresses_the_program(qapp: QApplication) -> None:
    theme = Theme(qapp)
    for choice in (ThemeChoice.DARK, ThemeChoice.LIGHT):
        theme.apply(choice, 16)
        expected = load_colors(choice)
        assert theme.colors == expected
        assert qapp.palette().color(QPalette.ColorRole.Window) == expected.window
        assert expected.accent.name() in qapp.styleSheet()
        assert "$" not in qapp.styleSheet()
    assert theme.font(theme.ui_px).pixelSize() == 15
    theme.close()


def test_the_system_theme_is_the_desktops(qapp: QApplication) -> None:
    theme = Theme(qapp)
    theme.apply(ThemeChoice.SYSTEM, 14)
    is_dark = qapp.styleHints().colorScheme() is Qt.ColorScheme.Dark
    assert theme.colors == load_colors(ThemeChoice.DARK if is_dark else ThemeChoice.LIGHT)
    theme.close()


def test_figures_have_equal_width(theme: Theme) -> None:
    font = theme.font(13)
    assert [tag.toString() for tag in font.featureTags()] == [b"tnum"]


@pytest.mark.parametrize("text_px", [10, 28])
def test_small_text_stays_readable(qapp: QApplication, text_px: int) -> None:
    theme = Theme(qapp)
    theme.apply(ThemeChoice.LIGHT, text_px)
    assert theme.small_px >= 11
    assert theme.code_font().pixelSize() == theme.ui_px
    theme.close()


@BOTH
def test_code_is_readable_in_every_colour(choice: ThemeChoice) -> None:
    colors, ground = load_code_colors(choice), load_colors(choice).code
    assert set(colors) == {color.value for color in CodeColor}
    for name, color in colors.items():
        assert contrast(color, ground) >= 4.5, name


@pytest.mark.parametrize("do", ["Delete", "Delete it, " * 6])
def test_a_questions_words_and_buttons_stand_on_one_edge(page: QWidget, do: str) -> None:
    box = confirm(Question(text="Delete?", detail="Why not. " * 9, do=do), lambda: None, page)
    labels = [one for one in box.findChildren(QLabel) if one.isVisible()]
    edges = {one.mapTo(box, one.rect().topLeft()).x() for one in labels}
    buttons = box.findChild(QDialogButtonBox)
    assert edges == {buttons.x()}
    assert all(one.width() >= 300 for one in labels), "lines that can be read"
    box.reject()


def test_another_theme_leaves_the_keyboard_where_it_is(
    theme: Theme, page: QWidget, qtbot: Any
) -> None:
    box = confirm(Question(text="Delete it?", detail="", do="Delete"), lambda: None, page)
    no = box.defaultButton()
    qtbot.waitUntil(no.hasFocus)
    theme.apply(ThemeChoice.DARK, 14)
    assert box.focusWidget() is no, "or Enter would delete"
    box.reject()
