"""The last minutes as lanes, one a chat or program: writing, parked, coming back, in line. GUI thread.

Each stretch is shape as well as colour: work is a full bar in the chat's hue, a park a half bar, standing in line a
thin one, the return an outline. Hovering, or walking with the arrow keys, says what it was and who was waited for.
Drawn when told, at most ten times a second; must not import services.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from studio.models.timeline import Lane, Span, Stretch
from studio.views.speech import say
from studio.views.theme import Theme
from studio.views.words import elapsed, plural, shortened_inside, tr

_LANE_PX = 18
_AXIS_PX = 18
_LABEL_PX = 200
_LABEL_SHARE = 0.4
_GAP_PX = 8
_BAR_PX = 10
_WINDOWS_S = (20.0, 60.0, 120.0, 300.0, 600.0)
_SPOKEN_CHARS = 32


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn: `hues` are the requests', by id."""

    lanes: tuple[Lane, ...] = ()
    now_s: float = 0.0
    hues: Callable[[str], int] = lambda _key: 0


class TimelineView(QWidget):
    """The latest lanes, as many as `set_most_lanes` says."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._picture = Picture()
        self._window_s = _WINDOWS_S[0]
        self._current: Span | None = None
        self._most_lanes = 6
        self.setAccessibleName(tr("Timeline of the last minutes"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._fit()

    def set_most_lanes(self, number: int) -> None:
        """How many are drawn from the next picture on."""
        self._most_lanes = number

    @staticmethod
    def lanes_within(height_px: int) -> int:
        """How many lanes there is room for, beside the axis."""
        return (height_px - _AXIS_PX) // _LANE_PX

    def show_picture(self, picture: Picture) -> None:
        """Draw these lanes, the latest ones where there are more than fit."""
        latest = sorted(picture.lanes, key=_last_moment, reverse=True)[: self._most_lanes]
        lanes = tuple(lane for lane in picture.lanes if lane in latest)
        num_before = len(self._picture.lanes)
        self._picture = Picture(lanes, picture.now_s, picture.hues)
        starts = [lane.spans[0].start_s for lane in lanes if lane.spans]
        age_s = picture.now_s - min(starts, default=picture.now_s)
        self._window_s = next((one for one in _WINDOWS_S if age_s <= one), _WINDOWS_S[-1])
        if len(lanes) != num_before:
            self._fit()
        self.update()

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """Those that are drawn."""
        return self._picture.lanes

    def span_at(self, at: QPoint) -> tuple[Lane, Span] | None:
        """What lies under a point; the last one there where several are too short to be told apart."""
        row = at.y() // _LANE_PX
        if not 0 <= row < len(self._picture.lanes):
            return None
        lane = self._picture.lanes[row]
        hits = [span for span in lane.spans if self._box(span, row).contains(at.x(), self._y(row))]
        return (lane, hits[-1]) if hits else None

    def describe(self, lane: Lane, span: Span) -> str:
        """ "Children, parked for 14 s, 3 min ago: waited for Lisbon"."""
        now_s = self._picture.now_s
        words = tr("{name}: {state} for {time}").format(
            name=shortened_inside(lane.name, _SPOKEN_CHARS),
            state=_stretch_words(span),
            time=elapsed(span.seconds(now_s)),
        )
        if span.end_s is not None:
            words += ", " + tr("{time} ago").format(time=elapsed(now_s - span.end_s))
        if span.stretch.is_wait and span.others:
            names = ", ".join(shortened_inside(name, _SPOKEN_CHARS) for name in span.others)
            words += "\n" + tr("Waited for {names}").format(names=names)
        return words

    def sizeHint(self) -> QSize:
        rows = max(len(self._picture.lanes), 1)
        return QSize(200, rows * _LANE_PX + _AXIS_PX)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self._tip_at(event.pos()), self)
            return True
        return super().event(event)

    def _tip_at(self, at: QPoint) -> str:
        """What a stretch was; over a name all of it."""
        if found := self.span_at(at):
            return self.describe(*found)
        row = at.y() // _LANE_PX
        has_name = at.x() < self._label_px and 0 <= row < len(self._picture.lanes)
        return self._picture.lanes[row].name if has_name else ""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {
            Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0),
            Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1),
        }  # fmt: skip
        step = steps.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
        else:
            self._walk(*step)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._current = None
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.font(self._theme.small_px))
        painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)  # a name has its own
        for row, lane in enumerate(self._picture.lanes):
            self._paint_name(painter, lane, row)
            for span, box in self._boxes(lane, row):
                hue = self._theme.hues[self._picture.hues(span.request_id)]
                self._paint_span(painter, span, box, hue)
        self._paint_axis(painter)
        if self.hasFocus() and self._current is None:
            painter.setPen(QPen(self._theme.colors.accent, 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
        painter.end()

    def _fit(self) -> None:
        self.setFixedHeight(self.sizeHint().height())

    @staticmethod
    def _y(row: int) -> float:
        return row * _LANE_PX + _LANE_PX / 2

    @property
    def _label_px(self) -> int:
        return min(_LABEL_PX, round(_LABEL_SHARE * self.width()))

    def _x(self, moment_s: float) -> float:
        left = self._label_px + _GAP_PX
        share = 1 - (self._picture.now_s - moment_s) / self._window_s
        return left + max(share, 0.0) * (self.width() - left)

    def _box(self, span: Span, row: int) -> QRectF:
        end_s = self._picture.now_s if span.end_s is None else span.end_s
        left, right = self._x(span.start_s), self._x(end_s)
        return QRectF(left, row * _LANE_PX, max(right - left, 1.0), _LANE_PX)

    def _boxes(self, lane: Lane, row: int) -> Iterator[tuple[Span, QRectF]]:
        """What is to be drawn: of stretches within the same pixel only the last."""
        since_s = self._picture.now_s - self._window_s
        drawn: list[tuple[Span, QRectF]] = []
        for span in lane.spans:
            if span.end_s is not None and span.end_s < since_s:
                continue
            box = self._box(span, row)
            if drawn and int(drawn[-1][1].left()) == int(box.left()) and drawn[-1][1].width() < 2:
                drawn.pop()
            drawn.append((span, box))
        return iter(drawn)

    def _paint_name(self, painter: QPainter, lane: Lane, row: int) -> None:
        painter.setPen(self._theme.colors.secondary)
        metrics = painter.fontMetrics()
        text = metrics.elidedText(lane.name, Qt.TextElideMode.ElideRight, self._label_px)
        box = QRectF(0, row * _LANE_PX, self._label_px, _LANE_PX)
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)

    def _paint_span(self, painter: QPainter, span: Span, box: QRectF, hue: QColor) -> None:
        middle, waiting = box.center().y(), self._theme.colors.waiting
        heights = {
            Stretch.WORKING: _BAR_PX, Stretch.PARKED: _BAR_PX / 2, Stretch.QUEUED: 2.0,
            Stretch.COMING_BACK: _BAR_PX - 1.0,
        }  # fmt: skip
        height = heights[span.stretch]
        bar = QRectF(box.left(), middle - height / 2, box.width(), height)
        is_outline = span.stretch is Stretch.COMING_BACK
        color = waiting if span.stretch.is_wait else hue
        painter.setPen(QPen(hue, 1) if is_outline else Qt.PenStyle.NoPen)
        painter.setBrush(Qt.BrushStyle.NoBrush if is_outline else color)
        painter.drawRect(bar)
        if span is self._current:
            painter.setPen(QPen(self._theme.colors.text, 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(bar.adjusted(-1.5, -2.5, 1.5, 2.5))

    def _paint_axis(self, painter: QPainter) -> None:
        left, top = self._label_px + _GAP_PX, max(len(self._picture.lanes), 1) * _LANE_PX
        painter.setPen(QPen(self._theme.colors.border, 1))
        painter.drawLine(left, top, self.width(), top)
        painter.setPen(self._theme.colors.secondary)
        box = QRectF(left, top + 2, self.width() - left, _AXIS_PX - 2)
        painter.drawText(box, Qt.AlignmentFlag.AlignLeft, _since_words(self._window_s))
        painter.drawText(box, Qt.AlignmentFlag.AlignRight, tr("now"))

    def _walk(self, along: int, across: int) -> None:
        lanes = [lane for lane in self._picture.lanes if lane.spans]
        if not lanes:
            return
        found = next((lane for lane in lanes if self._current in lane.spans), None)
        if found is None or self._current is None:
            lane = lanes[0]
            self._current = lane.spans[-1]
        elif across:
            lane = lanes[min(max(lanes.index(found) + across, 0), len(lanes) - 1)]
            self._current = lane.spans[-1]
        else:
            lane = found
            place = lane.spans.index(self._current) + along
            self._current = lane.spans[min(max(place, 0), len(lane.spans) - 1)]
        words = self.describe(lane, self._current)
        say(self, words)
        row = self._picture.lanes.index(lane)
        at = self._box(self._current, row).bottomLeft().toPoint()
        QToolTip.showText(self.mapToGlobal(at), words, self)
        self.update()


def _since_words(window_s: float) -> str:
    if window_s < 60:
        return tr("{count} s ago").format(count=round(window_s))
    return plural(round(window_s / 60), "1 min ago", "{count} min ago")


def _last_moment(lane: Lane) -> float:
    last = lane.last
    if last is None:
        return float("-inf")
    return float("inf") if last.end_s is None else last.end_s


def _stretch_words(span: Span) -> str:
    match span.stretch:
        case Stretch.QUEUED:
            return tr("in line")
        case Stretch.WORKING:
            return tr("reading and writing")
        case Stretch.PARKED:
            return tr("parked by hand") if span.is_by_hand else tr("parked")
        case Stretch.COMING_BACK:
            return tr("coming back")
