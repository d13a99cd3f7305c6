"""Both themes are complete, readable and take hold of everything at once."""

from __future__ import annotations

from dataclasses import fields

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

from studio.models.settings import Theme as ThemeChoice
from studio.views.theme import Colors, Theme, load_colors

BOTH = pytest.mark.parametrize("choice", [ThemeChoice.LIGHT, ThemeChoice.DARK])


def luminance(color: QColor) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [color.redF(), color.greenF(), color.blueF()]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: QColor, other: QColor) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


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
