"""Formulas as pictures: LaTeX is typeset once, beside the window's work, and drawn in the colour of the text.

GUI thread, but for one worker thread that waits for the typesetter and lives only while there is something to typeset.
Must not import services.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from time import monotonic

from PySide6.QtCore import QByteArray, QObject, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from studio.views.chat.typesetting import Formula, Typesetter, Unready

MAX_LATEX_CHARS = 2000
"""Longer than this it stays source: typesetting takes about 0.25 ms a character."""
_MAX_FORMULAS = 400
_MAX_IMAGES = 400
_BATCH_S = 0.1
"""Rows with formulas are drawn anew no more often than this while there are more to come."""


class Formulas(QObject):
    """`ready` comes once for each batch of formulas that were asked for and are known by then."""

    ready = Signal()
    _arrived = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._known: OrderedDict[tuple[str, bool], Formula | Unready] = OrderedDict()
        self._images: OrderedDict[tuple[str, bool, str, int], QImage] = OrderedDict()
        self._asked: deque[tuple[str, bool]] = deque()
        self._typeset: deque[tuple[tuple[str, bool], Formula | Unready]] = deque()
        self._worker: threading.Thread | None = None
        self._typesetter = Typesetter()
        self._lock = threading.Lock()
        self._arrived.connect(self._on_arrived, Qt.ConnectionType.QueuedConnection)

    @property
    def is_busy(self) -> bool:
        """Whether a formula that was asked for is not known yet."""
        return any(known is Unready.TYPESETTING for known in self._known.values())

    def get(self, latex: str, *, is_display: bool) -> Formula | Unready:
        """The formula, or why there is none; one that is asked for the first time is typeset meanwhile."""
        key = (latex, is_display)
        known = self._known.get(key)
        if known is None:
            known = Unready.TYPESETTING if 0 < len(latex) <= MAX_LATEX_CHARS else Unready.BAD
            self._known[key] = known
            if known is Unready.TYPESETTING:
                self._ask(key)
        self._known.move_to_end(key)
        return known

    def image(self, latex: str, text_px: int, color: QColor, scale: float) -> QImage | None:
        """A formula of its own line as a picture; see `inline_image`."""
        return self._image((latex, True), text_px, color, scale)

    def inline_image(self, latex: str, text_px: int, color: QColor, scale: float) -> QImage | None:
        """The picture in one colour, in device pixels; None while there is no formula to draw."""
        return self._image((latex, False), text_px, color, scale)

    def close(self) -> None:
        """Typeset no more; returns when the worker has ended."""
        with self._lock:
            self._asked.clear()
            worker = self._worker
        self._typesetter.close()
        if worker is not None:
            worker.join()

    def _image(
        self, key: tuple[str, bool], text_px: int, color: QColor, scale: float
    ) -> QImage | None:
        formula = self._known.get(key)
        if not isinstance(formula, Formula):
            return None
        device_px = round(text_px * scale * 8)
        place = (*key, color.name(), device_px)
        if place not in self._images:
            self._images[place] = _draw(formula, text_px * scale, color)
            if len(self._images) > _MAX_IMAGES:
                self._images.popitem(last=False)
        self._images.move_to_end(place)
        return self._images[place]

    def _ask(self, key: tuple[str, bool]) -> None:
        with self._lock:
            self._asked.append(key)
            if self._worker is None:
                self._worker = threading.Thread(
                    target=self._work, name="layby-formulas", daemon=True
                )
                self._worker.start()

    def _work(self) -> None:
        """Worker thread. Ends when nothing is left; the next one that is asked for starts another."""
        told_s = monotonic()
        while (key := self._next()) is not None:
            made = self._typesetter.typeset(key[0], is_display=key[1])
            self._typeset.append((key, made))
            if not self._asked or monotonic() - told_s >= _BATCH_S:
                told_s = monotonic()
                self._arrived.emit()

    def _next(self) -> tuple[str, bool] | None:
        with self._lock:
            if self._asked:
                return self._asked.popleft()
            self._worker = None
            return None

    def _on_arrived(self) -> None:
        if not self._typeset:
            return
        while self._typeset:
            key, formula = self._typeset.popleft()
            self._known[key] = formula
        while len(self._known) > _MAX_FORMULAS:
            self._known.popitem(last=False)
        self.ready.emit()


def _draw(formula: Formula, device_px: float, color: QColor) -> QImage:
    size = QSizeF(formula.width * device_px, formula.height * device_px)
    image = QImage(
        max(1, round(size.width())),
        max(1, round(size.height())),
        QImage.Format.Format_ARGB32_Premultiplied,
    )
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    QSvgRenderer(QByteArray(formula.svg.encode())).render(painter, QRectF(image.rect()))
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceIn)
    painter.fillRect(image.rect(), color)
    painter.end()
    return image
