"""Our outline icons (resources/icons, 20 x 20), drawn in any colour and at any scale. GUI thread."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QImage, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer

_FOLDER = files("resources") / "icons"
_SCALES = (1.0, 1.5, 2.0, 3.0)
_SIZE_PX = 20


def pixmap(name: str, color: QColor, size_px: int = _SIZE_PX, *, scale: float = 1.0) -> QPixmap:
    """One icon in one colour. Raises FileNotFoundError for a name that has no file."""
    picture = QPixmap.fromImage(_image(name, color.name(), round(size_px * scale)))
    picture.setDevicePixelRatio(scale)
    return picture


def palette_icon(name: str, palette: QPalette) -> QIcon:
    """An icon in the colours of a button's text, sharp at every usual scale."""
    group, role = QPalette.ColorGroup, QPalette.ColorRole.ButtonText
    normal = palette.color(group.Active, role)  # a palette's own current group may be any
    disabled = QGuiApplication.palette().color(group.Disabled, role)  # a style sheet's is for all
    return _icon(name, normal.name(), disabled.name())


@lru_cache(maxsize=256)
def _icon(name: str, normal: str, disabled: str) -> QIcon:
    made = QIcon()
    for scale in _SCALES:
        made.addPixmap(pixmap(name, QColor(normal), scale=scale), QIcon.Mode.Normal)
        made.addPixmap(pixmap(name, QColor(disabled), scale=scale), QIcon.Mode.Disabled)
    return made


@lru_cache(maxsize=256)
def _image(name: str, color: str, side_px: int) -> QImage:
    """Drawn once: every message has an icon, and drawing one takes as long as laying out its text."""
    source = (_FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    renderer = QSvgRenderer(QByteArray(source.replace("currentColor", color).encode()))
    image = QImage(side_px, side_px, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    renderer.render(painter, QRectF(image.rect()))
    painter.end()
    return image


def app_icon() -> QIcon:
    """Layby's own mark, for the window and the task bar."""
    made = QIcon()
    for size_px in (16, 24, 32, 48, 64, 128, 256):
        made.addPixmap(pixmap("layby", QColor(), size_px))
    return made
