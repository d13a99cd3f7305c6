"""Draws a chart of horizontal bars into a PNG file, for the README and for reports; the window has none.

Any thread, without a window: Qt paints into an image. Must not import services.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QImage, QPainter
from PySide6.QtWidgets import QApplication

_WIDTH = 1200
_LABELS = 280
_MARGIN = 24
_BAR = 14
_GAP = 16
_HEAD = 64
_FIGURES = 70
_COLOURS = ("#2f6fde", "#e08a2e", "#3f9d6b", "#b04a78", "#7a62c9", "#8a8f98")
_INK = QColor("#1c2430")


@dataclass(frozen=True, slots=True, kw_only=True)
class BarChart:
    """Bars in groups: `values[group][series]`, none below 0."""

    title: str
    series: tuple[str, ...]
    groups: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]


def draw_png(chart: BarChart, path: Path) -> None:
    """Draw it and write the file, whose name ends in .png. Raises OSError when that is not possible."""
    # Text needs an application; a program without a window has none, nor perhaps a screen.
    application = QApplication.instance() or QApplication(["layby", "-platform", "offscreen"])
    image = _draw(chart)
    if not image.save(str(path)):
        raise OSError(
            f"the plot cannot be written to {path}; give a file ending in .png in a folder there is"
        )
    del application


def _draw(chart: BarChart) -> QImage:
    group_height = _BAR * len(chart.series) + _GAP
    image = QImage(
        _WIDTH, _HEAD + group_height * len(chart.groups) + _MARGIN, QImage.Format.Format_RGB32
    )
    image.fill(Qt.GlobalColor.white)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(_INK)
    _draw_head(painter, chart)
    largest = max((value for group in chart.values for value in group), default=0.0) or 1.0
    scale = (_WIDTH - _LABELS - _MARGIN - _FIGURES) / largest
    for number, (label, values) in enumerate(zip(chart.groups, chart.values, strict=True)):
        top = _HEAD + group_height * number
        box = QRectF(0, top, _LABELS - 12, _BAR * len(values))
        painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, label)
        for index, value in enumerate(values):
            bar = QRectF(_LABELS, top + _BAR * index, max(value * scale, 1.0), _BAR - 2)
            painter.fillRect(bar, _colour(index))
            figure = QRectF(bar.right() + 6, bar.top(), _FIGURES, bar.height())
            painter.drawText(figure, Qt.AlignmentFlag.AlignVCenter, f"{value:.1f}")
    painter.end()
    return image


def _draw_head(painter: QPainter, chart: BarChart) -> None:
    """Title and legend."""
    font = QFont(painter.font())
    font.setPixelSize(16)
    font.setBold(True)
    painter.setFont(font)
    painter.drawText(_MARGIN, 26, chart.title)
    font.setPixelSize(11)
    font.setBold(False)
    painter.setFont(font)
    left = float(_LABELS)
    for index, name in enumerate(chart.series):
        painter.fillRect(QRectF(left, 38, 10, 10), _colour(index))
        painter.drawText(int(left) + 15, 47, name)
        left += 15 + painter.fontMetrics().horizontalAdvance(name) + 20


def _colour(index: int) -> QColor:
    """Past the last colour they begin again, lighter."""
    round_, place = divmod(index, len(_COLOURS))
    return QColor(_COLOURS[place]).lighter(100 + 40 * round_)
