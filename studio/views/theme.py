"""Colours and fonts of the window: one palette and one style sheet for the whole program, light or dark.

GUI thread. Widgets that paint themselves read `Theme.colors` when they paint and again on a palette change; nobody
else holds a colour. The tokens lie in resources/themes. Must not import services.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from string import Template

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette
from PySide6.QtWidgets import QApplication

from studio.models.settings import Theme as ThemeChoice
from studio.views.pulse import Pulse

THEMES = files("resources") / "themes"
NUM_HUES = 12
_SMALLEST_PX = 11
_HEADING_MORE_PX = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Colors:
    """The colour tokens. Every text colour has at least 4.5:1 on window, sidebar, raised, bubble and code."""

    window: QColor
    sidebar: QColor
    raised: QColor
    border: QColor
    hover: QColor
    pressed: QColor
    selected: QColor
    bubble: QColor
    code: QColor
    text: QColor
    secondary: QColor
    disabled: QColor
    accent: QColor
    accent_hover: QColor
    on_accent: QColor
    waiting: QColor
    failed: QColor
    track: QColor
    scroll: QColor


def load_colors(choice: ThemeChoice) -> Colors:
    """The tokens of the light or the dark theme. Raises TypeError if the file lacks one or has one too many."""
    text = (THEMES / f"{choice.value}.json").read_text(encoding="utf-8")
    return Colors(**{name: QColor(value) for name, value in json.loads(text).items()})


def load_hues(choice: ThemeChoice) -> tuple[QColor, ...]:
    """NUM_HUES colours that tell chats apart, also for the colour-blind; at least 3:1 on window and sidebar."""
    hues = json.loads((THEMES / "hues.json").read_text(encoding="utf-8"))
    return tuple(QColor(value) for value in hues[choice.value])


def load_code_colors(choice: ThemeChoice) -> dict[str, QColor]:
    """Colours of the tokens of code by name; at least 4.5:1 on code's background."""
    colors = json.loads((THEMES / "code.json").read_text(encoding="utf-8"))
    return {name: QColor(value) for name, value in colors[choice.value].items()}


def with_high_contrast(colors: Colors) -> Colors:
    """The same theme for eyes that need every edge and every word to stand out."""
    return replace(
        colors,
        border=colors.secondary,
        secondary=colors.text,
        disabled=colors.secondary,
        scroll=colors.secondary,
        track=colors.disabled,
        selected=colors.pressed,
    )


class Theme:
    """What the window looks like now. `apply` changes it for every widget there is."""

    def __init__(self, app: QApplication) -> None:
        self.pulse = Pulse()
        self._app = app
        self._choice = ThemeChoice.SYSTEM
        self._family = app.font().family()
        self._fonts: dict[tuple[int, bool], QFont] = {}
        """By size and whether it is bold; delegates ask for one with every row."""
        self._code_family = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()
        self.colors = load_colors(ThemeChoice.LIGHT)
        self.hues = load_hues(ThemeChoice.LIGHT)
        self.code_colors = load_code_colors(ThemeChoice.LIGHT)
        self.text_px = 14
        self._hints = app.styleHints()
        self._hints.colorSchemeChanged.connect(self._on_scheme_changed)
        self._eyes = self._hints.accessibility()
        self._eyes.contrastPreferenceChanged.connect(self._on_contrast_changed)

    def apply(self, choice: ThemeChoice, text_px: int) -> None:
        """Dress the program. SYSTEM follows the desktop, also later."""
        self._choice = choice
        self.text_px = text_px
        scheme = self._hints.colorScheme()
        if choice is ThemeChoice.SYSTEM:
            is_dark = scheme is Qt.ColorScheme.Dark
            choice = ThemeChoice.DARK if is_dark else ThemeChoice.LIGHT
        self.colors = load_colors(choice)
        if self._eyes.contrastPreference() is Qt.ContrastPreference.HighContrast:
            self.colors = with_high_contrast(self.colors)
        self.hues = load_hues(choice)
        self.code_colors = load_code_colors(choice)
        focused = {window: window.focusWidget() for window in self._app.topLevelWidgets()}
        self._app.setFont(self.font(self.ui_px))
        self._app.setPalette(_palette(self.colors))
        self._app.setStyleSheet(self._style_sheet())
        for window, widget in focused.items():  # buttons of dialogs are laid out anew, and lose it
            if widget is not None and window.focusWidget() is not widget:
                widget.setFocus(Qt.FocusReason.OtherFocusReason)

    def close(self) -> None:
        """Follow the desktop no longer."""
        self._hints.colorSchemeChanged.disconnect(self._on_scheme_changed)
        self._eyes.contrastPreferenceChanged.disconnect(self._on_contrast_changed)

    @property
    def ui_px(self) -> int:
        """Size of text on controls."""
        return max(_SMALLEST_PX, self.text_px - 1)

    @property
    def small_px(self) -> int:
        """Size of secondary text."""
        return max(_SMALLEST_PX, self.text_px - 2)

    def font(self, size_px: int, *, is_bold: bool = False) -> QFont:
        """The system's interface font with figures of equal width. It is shared: change only a copy of it."""
        font = self._fonts.get((size_px, is_bold))
        if font is None:
            font = self._fonts[size_px, is_bold] = QFont(self._family)
            font.setPixelSize(size_px)
            font.setFeature(QFont.Tag("tnum"), 1)
            if is_bold:
                font.setWeight(QFont.Weight.DemiBold)
        return font

    def code_font(self) -> QFont:
        """The system's monospace font, a pixel smaller than the text around it."""
        font = QFont(self._code_family)
        font.setStyleHint(QFont.StyleHint.Monospace)
        font.setPixelSize(self.ui_px)
        return font

    def _style_sheet(self) -> str:
        template = Template((THEMES / "layby.qss").read_text(encoding="utf-8"))
        tokens = {field.name: getattr(self.colors, field.name).name() for field in fields(Colors)}
        sizes = {
            "heading_px": self.text_px + _HEADING_MORE_PX,
            "text_px": self.text_px,
            "ui_px": self.ui_px,
            "small_px": self.small_px,
        }
        return template.substitute(tokens | {name: str(size) for name, size in sizes.items()})

    def _on_contrast_changed(self) -> None:
        self.apply(self._choice, self.text_px)

    def _on_scheme_changed(self) -> None:
        if self._choice is ThemeChoice.SYSTEM:
            self.apply(self._choice, self.text_px)


def _palette(colors: Colors) -> QPalette:
    palette = QPalette()
    role, off = QPalette.ColorRole, QPalette.ColorGroup.Disabled
    for where, color in (
        (role.Window, colors.window), (role.WindowText, colors.text), (role.Base, colors.window),
        (role.AlternateBase, colors.sidebar), (role.Text, colors.text), (role.Button, colors.window),
        (role.ButtonText, colors.text), (role.PlaceholderText, colors.secondary),
        (role.Highlight, colors.accent), (role.HighlightedText, colors.on_accent),
        (role.Accent, colors.accent), (role.Link, colors.accent), (role.LinkVisited, colors.accent),
        (role.ToolTipBase, colors.raised), (role.ToolTipText, colors.text), (role.Mid, colors.border),
        (role.Light, colors.raised), (role.Midlight, colors.hover), (role.Dark, colors.border),
        (role.Shadow, colors.border), (role.BrightText, colors.failed),
    ):  # fmt: skip
        palette.setColor(where, color)
    for where in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(off, where, colors.disabled)
    return palette
