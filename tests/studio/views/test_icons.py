"""Every icon that is used exists, and is drawn in the colour asked for."""

from __future__ import annotations

from importlib.resources import files

import pytest
from PySide6.QtGui import QColor, QIcon, QPalette
from PySide6.QtWidgets import QWidget

from studio.views.icon_button import IconButton
from studio.views.icons import app_icon, palette_icon, pixmap
from studio.views.theme import Theme

NAMES = sorted(
    path.name.removesuffix(".svg")
    for path in (files("resources") / "icons").iterdir()
    if path.name.endswith(".svg")
)


@pytest.mark.parametrize("name", NAMES)
def test_an_icon_is_not_empty(name: str, qapp: object) -> None:
    image = pixmap(name, QColor("#ff0000"), 20, scale=2).toImage()
    assert (image.width(), image.devicePixelRatio()) == (40, 2)
    assert any(image.pixelColor(x, y).alpha() for x in range(40) for y in range(40))


def test_an_outline_has_the_colour_asked_for(qapp: object) -> None:
    image = pixmap("stop", QColor("#12ab34"), 20).toImage()
    assert image.pixelColor(10, 10).name() == "#12ab34"


def test_a_button_icon_takes_normal_and_disabled_colours(qapp: object) -> None:
    palette = QPalette()
    group, role = QPalette.ColorGroup, QPalette.ColorRole.ButtonText
    palette.setColor(group.Active, role, QColor("#111111"))
    palette.setColor(group.Disabled, role, QColor("#999999"))
    palette.setCurrentColorGroup(group.Disabled)
    made = palette_icon("stop", palette)
    assert made.pixmap(20).toImage().pixelColor(10, 10).name() == "#111111"


def test_a_button_that_is_dressed_by_the_style_sheet_looks_off_when_it_is(
    theme: Theme, page: QWidget
) -> None:
    button = IconButton("stop", "Stop", page)
    button.show()
    seen = [
        button.icon().pixmap(20, mode=mode).toImage().pixelColor(10, 10).name()
        for mode in (QIcon.Mode.Normal, QIcon.Mode.Disabled)
    ]
    assert seen[1] == theme.colors.disabled.name()
    assert seen[0] != seen[1]


def test_the_program_has_an_icon(qapp: object) -> None:
    assert not app_icon().isNull()
