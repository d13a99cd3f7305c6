"""One widget for each kind of setting: it shows a value and tells when the user has given another. GUI thread.

Must not import services.
"""

from __future__ import annotations

from enum import Enum
from typing import cast

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QWidget

from studio.models.errors import SettingError
from studio.models.setting_field import SettingField, SettingKind, SettingValue
from studio.views.inputs import CheckBox, QuietList, QuietNumber
from studio.views.settings.setting_words import choice_words
from studio.views.words import tr

_INT_MAX = (1 << 31) - 1


class Editor(QWidget):
    """`edited` carries a value the user gave; `refused` the error of a text that means none."""

    edited = Signal(object)
    refused = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.row = QHBoxLayout(self)
        self.row.setContentsMargins(0, 0, 0, 0)

    def show_value(self, value: SettingValue) -> None:
        """Show a value without reporting it."""
        raise NotImplementedError


def make_editor(declared: SettingField, parent: QWidget) -> Editor:
    """The widget for a setting; its accessible name is the setting's title."""
    low, high = declared.info.low, declared.info.high
    if declared.kind is SettingKind.SWITCH:
        return _Switch(declared, parent)
    if declared.kind is SettingKind.CHOICE:
        return _Choice(declared, parent)
    is_small = low is not None and high is not None and max(-low, high - 1) <= _INT_MAX
    if declared.kind is SettingKind.INTEGER and is_small and not declared.is_optional:
        return _Number(declared, parent)
    return _Text(declared, parent)


class _Switch(Editor):
    def __init__(self, declared: SettingField, parent: QWidget) -> None:
        super().__init__(parent)
        self._box = CheckBox(tr(declared.info.title), self)
        self._box.clicked.connect(self._on_clicked)
        self.row.addWidget(self._box)
        self.setFocusProxy(self._box)

    def show_value(self, value: SettingValue) -> None:
        self._box.setChecked(bool(value))

    def _on_clicked(self, is_on: bool) -> None:
        self.edited.emit(is_on)


class _Choice(Editor):
    def __init__(self, declared: SettingField, parent: QWidget) -> None:
        super().__init__(parent)
        self._list = QuietList(self)
        self._list.setAccessibleName(tr(declared.info.title))
        self._choices = tuple(declared.choices or ())
        self._list.addItems([choice_words(choice) for choice in self._choices])
        self._list.activated.connect(lambda place: self.edited.emit(self._choices[place]))
        self.row.addWidget(self._list)
        self.setFocusProxy(self._list)

    def show_value(self, value: SettingValue) -> None:
        self._list.setCurrentIndex(self._choices.index(cast(Enum, value)))


class _Number(Editor):
    def __init__(self, declared: SettingField, parent: QWidget) -> None:
        super().__init__(parent)
        self._field = QuietNumber(self)
        self._field.setAccessibleName(tr(declared.info.title))
        low, high = declared.info.low or 0, declared.info.high or 0
        self._field.setRange(low, min(high, _INT_MAX))
        self._field.setGroupSeparatorShown(bool(declared.info.unit))
        self._field.setKeyboardTracking(False)
        if declared.info.unit:
            self._field.setSuffix(f" {tr(declared.info.unit)}")
        self._field.setSpecialValueText(tr(declared.info.lowest))
        special_px = self.fontMetrics().horizontalAdvance(self._field.specialValueText())
        room_px = 2 * self.fontMetrics().height()
        self._field.setFixedWidth(max(176, 11 * self.fontMetrics().height(), special_px + room_px))
        self._field.valueChanged.connect(self.edited.emit)
        self.row.addWidget(self._field, 0, Qt.AlignmentFlag.AlignLeft)
        self.setFocusProxy(self._field)

    def show_value(self, value: SettingValue) -> None:
        self._field.blockSignals(True)
        self._field.setValue(cast(int, value))
        self._field.blockSignals(False)


class _Text(Editor):
    """Takes effect with Enter or when the field is left."""

    def __init__(self, declared: SettingField, parent: QWidget) -> None:
        super().__init__(parent)
        self._declared = declared
        self._shown = ""
        self._field = QLineEdit(self)
        self._field.setAccessibleName(tr(declared.info.title))
        if declared.info.is_secret:
            self._field.setEchoMode(QLineEdit.EchoMode.PasswordEchoOnEdit)
        self._field.editingFinished.connect(self._on_finished)
        self.row.addWidget(self._field)
        self.setFocusProxy(self._field)

    def show_value(self, value: SettingValue) -> None:
        self._shown = "" if value is None else str(value)
        self._field.setText(self._shown)

    def _on_finished(self) -> None:
        text = self._field.text()
        if text == self._shown:
            return
        try:
            value = self._declared.parse(text, source=self._declared.info.title)
        except SettingError as error:
            self.refused.emit(error)
        else:
            self.edited.emit(value)
