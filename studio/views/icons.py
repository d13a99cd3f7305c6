"""Our outline icons (resources/icons, 20 x 20), drawn in any colour and at any scale. GUI thread."""

from __future__ import annotations

from importlib.resources import files

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer

_FOLDER = files("resources") / "icons"
_SCALES = (1.0, 1.5, 2.0, 3.0)
_SIZE_PX = 20


def pixmap(name: str, color: QColor, size_px: int = _SIZE_PX, *, scale: float = 1.0) -> QPixmap:
    """One icon in one colour. Raises FileNotFoundError for a name that has no file."""
    source = (_FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    renderer = QSvgRenderer(QByteArray(source.replace("currentColor", color.name()).encode()))
    picture = QPixmap(round(size_px * scale), round(size_px * scale))
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    renderer.render(painter, QRectF(picture.rect()))
    painter.end()
    picture.setDevicePixelRatio(scale)
    return picture


def palette_icon(name: str, palette: QPalette) -> QIcon:
    """An icon in the colours of a button's text, sharp at every usual scale."""
    group, role = QPalette.ColorGroup, QPalette.ColorRole.ButtonText
    normal = palette.color(group.Active, role)  # a palette's own current group may be any
    disabled = palette.color(group.Disabled, role)
    made = QIcon()
    for scale in _SCALES:
        made.addPixmap(pixmap(name, normal, scale=scale), QIcon.Mode.Normal)
        made.addPixmap(pixmap(name, disabled, scale=scale), QIcon.Mode.Disabled)
    return made


def app_icon() -> QIcon:
    """Layby's own mark, for the window and the task bar."""
    made = QIcon()
    for size_px in (16, 24, 32, 48, 64, 128, 256):
        made.addPixmap(pixmap("layby", QColor(), size_px))
    return made
