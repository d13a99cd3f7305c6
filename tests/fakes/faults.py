"""What a careful eye would find wrong on a window: words that are cut, things on or outside others, words left English.

Qt decides where everything stands, so all of it can be asked for. Each function returns one line a fault, or nothing.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QFontMetrics, QFontMetricsF
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFormLayout,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLayout,
    QLayoutItem,
    QLineEdit,
    QMenu,
    QMenuBar,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QStyle,
    QStyleOptionButton,
    QStyleOptionComboBox,
    QStyleOptionFrame,
    QWidget,
)

from fakes.spoken import nameless
from studio.views.actions import plain
from studio.views.elided_label import WholeLabel

_SLACK_PX = 1
_INDENT_PX = 9
"""Of the words in an input: its hairline and eight more."""
_MOST_OF_A_GAP = 0.2
"""Of a line may be left below the last one: no letter reaches that high."""
_HIDDEN_MARGIN_PX = 4
"""What a line edit keeps free of its own beside what its style says."""


def faults_of(window: QWidget) -> list[str]:
    """Everything below that can be told of a window in any language."""
    return [
        *nameless(window),
        *bare(window),
        *cut(window),
        *outside(window),
        *on_each_other(window),
        *ragged(window),
        *askew(window),
        *halved(window),
    ]


def seen(window: QWidget) -> Iterator[QWidget]:
    """The widgets that are on screen as part of this window, itself first."""
    for widget in (window, *window.findChildren(QWidget)):
        is_own = not widget.objectName().startswith("qt_") and widget.window() is window.window()
        if is_own and widget.isVisibleTo(window):
            yield widget


def bare(window: QWidget) -> list[str]:
    """Qt's own inputs, which lack the tick, the arrow and the margins that ours have (`studio.views.inputs`)."""
    kinds = (QCheckBox, QComboBox, QSpinBox, QDoubleSpinBox)
    return [f"not ours: {_name(widget)}" for widget in seen(window) if type(widget) in kinds]


def cut(window: QWidget) -> list[str]:
    """Words that have less room than they need, where nothing else tells the whole of them."""
    return [
        f"cut: {_name(widget)} {text!r}"
        for widget in seen(window)
        if not widget.toolTip() and (text := _words(widget)) and not _has_room(widget, text)
        if not isinstance(widget, WholeLabel)
    ]


def outside(window: QWidget) -> list[str]:
    """Children that stand out of their parents, where no scroll bar brings them in; pages wider than their view."""
    found = []
    for widget in seen(window):
        parent = widget.parentWidget()
        if widget is window or parent is None:
            continue
        if isinstance(area := parent.parentWidget(), QAbstractScrollArea):
            is_page = isinstance(area, QScrollArea) and area.viewport() is parent
            if is_page and widget.width() > parent.width() + _SLACK_PX:
                found.append(f"wider than its view: {_name(widget)}")
            continue
        if not parent.rect().adjusted(-1, -1, 1, 1).contains(widget.geometry()):
            found.append(f"outside {_name(parent)}: {_name(widget)} {widget.geometry()}")
    return found


def on_each_other(window: QWidget) -> list[str]:
    """Neighbours in one layout that cover each other."""
    found = []
    for parent in seen(window):
        placed = [w for w in _placed(parent.layout()) if w.isVisibleTo(window)]
        for one, other in itertools.combinations(placed, 2):
            both = one.geometry() & other.geometry()
            if both.width() > _SLACK_PX and both.height() > _SLACK_PX:
                found.append(f"on each other: {_name(one)} and {_name(other)} {both}")
    return found


def ragged(window: QWidget) -> list[str]:
    """Inputs whose words, or box, stand elsewhere than those of the others: they would make a ragged edge."""
    return [
        f"ragged: {_name(widget)} at {at}"
        for widget in seen(window)
        if (at := _indent(widget)) is not None
        and abs(at - (0 if isinstance(widget, QCheckBox) else _INDENT_PX)) > _SLACK_PX
    ]


def askew(window: QWidget) -> list[str]:
    """Labels that do not stand in the middle of the field of one line that they are beside."""
    return [
        f"askew: {_name(label)} {label.text()!r} beside {_name(field)}"
        for parent in seen(window)
        for label, field in _labelled(parent.layout())
        if label.isVisibleTo(window) and field.isVisibleTo(window)
        if abs(label.geometry().center().y() - field.geometry().center().y()) > _SLACK_PX
    ]


def halved(window: QWidget) -> list[str]:
    """Fields of a height of their own that end within a line: it would be cut whenever the text is longer."""
    return [
        f"halved: {_name(field)} shows {lines:.2f} lines"
        for field in seen(window)
        if isinstance(field, QPlainTextEdit) and field.minimumHeight() == field.maximumHeight()
        if _MOST_OF_A_GAP < (lines := _num_lines(field)) % 1 < 1 - _MOST_OF_A_GAP / 2
    ]


def unmarked(window: QWidget, mark: str, data: re.Pattern[str]) -> list[str]:
    """Words that did not come out of a catalogue whose every sentence has the mark, and are no `data`."""
    return [
        f"not translated: {_name(widget)} {text!r}"
        for widget in seen(window)
        for text in (*_all_words(widget), *_items(widget))
        if mark not in text and re.search(r"[^\W\d_]{2}", data.sub("", text))
    ]


def _words(widget: QWidget) -> str:
    """What a widget shows of its own, as far as it has to be whole."""
    match widget:
        case QLabel():
            return "" if widget.textFormat() is Qt.TextFormat.RichText else widget.text()
        case QAbstractButton():
            return plain(widget.text())
        case QComboBox():
            return widget.currentText()
        case QAbstractSpinBox():
            return widget.text()
        case QLineEdit():
            is_inner = isinstance(widget.parentWidget(), QAbstractSpinBox | QComboBox)
            return "" if widget.text() or is_inner else widget.placeholderText()
        case QPlainTextEdit():
            return "" if widget.toPlainText() else widget.placeholderText()
    return ""


def _has_room(widget: QWidget, text: str) -> bool:
    metrics = widget.fontMetrics()
    match widget:
        case QLabel():
            return _label_has_room(widget, text, metrics)
        case QPushButton() | QCheckBox():
            return widget.width() + _SLACK_PX >= widget.sizeHint().width()
        case QAbstractSpinBox():
            inner = widget.findChild(QLineEdit)
            margins = inner.textMargins()
            room = inner.width() - margins.left() - margins.right() - _HIDDEN_MARGIN_PX
            return _width(metrics, text) <= room
        case QComboBox():
            option = QStyleOptionComboBox()
            widget.initStyleOption(option)
            control, part = (
                QStyle.ComplexControl.CC_ComboBox,
                QStyle.SubControl.SC_ComboBoxEditField,
            )
            return (
                _width(metrics, text)
                <= widget.style().subControlRect(control, option, part, widget).width()
            )
        case QLineEdit():
            frame = QStyleOptionFrame()
            widget.initStyleOption(frame)
            contents = QStyle.SubElement.SE_LineEditContents
            room = widget.style().subElementRect(contents, frame, widget).width()
            return _width(metrics, text) <= room - _HIDDEN_MARGIN_PX
        case QPlainTextEdit():
            room = widget.viewport().rect().adjusted(4, 4, -4, -4)
            return _wrapped(metrics, text, room).height() <= room.height()
    return True


def _label_has_room(label: QLabel, text: str, metrics: QFontMetrics) -> bool:
    room = label.contentsRect().adjusted(label.margin(), 0, -label.margin(), 0)
    if not label.wordWrap():
        return _width(metrics, text) <= room.width() + _SLACK_PX
    is_tall_enough = label.height() + _SLACK_PX >= label.heightForWidth(label.width())
    longest = max(re.split(r"\s|(?<=[-/])", text), key=len)
    return is_tall_enough and _width(metrics, longest) <= room.width() + _SLACK_PX


def _num_lines(field: QPlainTextEdit) -> float:
    room_px = field.viewport().height() - 2 * field.document().documentMargin()
    return room_px / QFontMetricsF(field.document().defaultFont()).lineSpacing()


def _indent(widget: QWidget) -> int | None:
    """How far from its left edge what an input shows begins; None for what has an icon, or is no input."""
    style = widget.style()
    match widget:
        case QCheckBox():
            option = QStyleOptionButton()
            widget.initStyleOption(option)
            box = QStyle.SubElement.SE_CheckBoxIndicator
            return style.subElementRect(box, option, widget).left()
        case QAbstractSpinBox():
            inner = widget.findChild(QLineEdit)
            return inner.x() + inner.textMargins().left() + _HIDDEN_MARGIN_PX // 2
        case QComboBox():
            combo = QStyleOptionComboBox()
            widget.initStyleOption(combo)
            part = QStyle.SubControl.SC_ComboBoxEditField
            control = QStyle.ComplexControl.CC_ComboBox
            return style.subControlRect(control, combo, part, widget).left()
        case QLineEdit() if not _is_special(widget):
            frame = QStyleOptionFrame()
            widget.initStyleOption(frame)
            contents = style.subElementRect(QStyle.SubElement.SE_LineEditContents, frame, widget)
            return contents.left() + widget.textMargins().left() + _HIDDEN_MARGIN_PX // 2
        case QPlainTextEdit() if widget.objectName() == "field":
            return widget.viewport().x() + round(widget.document().documentMargin())
    return None


def _is_special(line: QLineEdit) -> bool:
    """Whether it is a part of another input, or one of those that stand alone and look otherwise."""
    is_inner = isinstance(line.parentWidget(), QAbstractSpinBox | QComboBox)
    return is_inner or line.objectName() in ("search", "paletteField")


def _width(metrics: QFontMetrics, text: str) -> int:
    return max((metrics.horizontalAdvance(line) for line in text.splitlines()), default=0)


def _wrapped(metrics: QFontMetrics, text: str, room: QRect) -> QRect:
    flags = Qt.TextFlag.TextWordWrap
    return metrics.boundingRect(QRect(0, 0, room.width(), 10_000), int(flags), text)


def _all_words(widget: QWidget) -> Iterator[str]:
    """Everything that a widget says to eyes and ears, but for what somebody has typed."""
    yield from (_words(widget), widget.toolTip(), widget.accessibleDescription())
    if not isinstance(widget, QAbstractButton | QLabel):  # these are called what they show
        yield widget.accessibleName()
    if widget.isWindow() and not isinstance(widget, QMenu):
        yield widget.windowTitle()


def _items(widget: QWidget) -> Iterator[str]:
    """The entries of lists and menus."""
    if isinstance(widget, QMenu | QMenuBar):
        yield from (plain(action.text()) for action in widget.actions())
    if isinstance(widget, QComboBox):
        yield from (widget.itemText(place) for place in range(widget.count()))
    if isinstance(widget, QAbstractItemView) and (model := widget.model()) is not None:
        role = Qt.ItemDataRole
        for row in range(model.rowCount()):
            index = model.index(row, 0)
            yield str(index.data(role.AccessibleTextRole) or index.data(role.DisplayRole) or "")


def _placed(layout: QLayout | None) -> Iterator[QWidget]:
    for place in range(layout.count() if layout is not None else 0):
        item = layout.itemAt(place) if layout is not None else None
        if item is None:
            continue
        if (widget := item.widget()) is not None:
            yield widget
        yield from _placed(item.layout())


def _labelled(layout: QLayout | None) -> Iterator[tuple[QLabel, QWidget]]:
    """Labels with the fields of one line that stand in their rows."""
    for row in _rows(layout):
        labels = [one for one in row if isinstance(one, QLabel) and one.text()]
        fields = [one for one in row if isinstance(one, QLineEdit | QComboBox | QAbstractSpinBox)]
        yield from itertools.product(labels, fields)
    for place in range(layout.count() if layout is not None else 0):
        yield from _labelled(layout.itemAt(place).layout() if layout is not None else None)


def _rows(layout: QLayout | None) -> Iterator[list[QWidget]]:
    """What stands side by side in a form, a grid or a row."""
    match layout:
        case QFormLayout():
            roles = (QFormLayout.ItemRole.LabelRole, QFormLayout.ItemRole.FieldRole)
            for row in range(layout.rowCount()):
                yield _widgets(layout.itemAt(row, role) for role in roles)
        case QGridLayout():
            columns = range(layout.columnCount())
            for row in range(layout.rowCount()):
                yield _widgets(layout.itemAtPosition(row, column) for column in columns)
        case QHBoxLayout():
            yield _widgets(layout.itemAt(place) for place in range(layout.count()))


def _widgets(items: Iterable[QLayoutItem | None]) -> list[QWidget]:
    found = (item.widget() for item in items if item is not None)
    return [widget for widget in found if widget is not None]


def _name(widget: QWidget) -> str:
    called = widget.objectName() or widget.accessibleName()
    return f"{type(widget).__name__} {called}".strip()
