"""One column of a comparison: whose settings it has, its temperature, and a system prompt of its own where it is to
have one. GUI thread. Must not import services.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QVBoxLayout,
    QWidget,
)

from studio.models.chat_settings import ChatSettings
from studio.views.icon_button import IconButton
from studio.views.inputs import LinesField, QuietList
from studio.views.inspector.chat_numbers import Scale
from studio.views.inspector.number_field import NumberField
from studio.views.words import tr

_TITLE_PX = 76
_HEAT = Scale(default=0.8, low=0.0, high=2.0, most=100.0, step=0.1)


class ColumnEditor(QWidget):
    """`removed` asks to take the column away; the last of its sources is a system prompt written here."""

    removed = Signal()
    changed = Signal()
    """Its settings are others now."""

    def __init__(
        self, settings: ChatSettings, choices: Sequence[tuple[str, ChatSettings]], parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._choices = choices
        self._title = QLabel(self)
        self._title.setFixedWidth(_TITLE_PX)
        self.source: QComboBox = QuietList(self)
        self.source.addItems([name for name, _ in choices])
        self.source.addItem(tr("A system prompt of its own"))
        self.source.activated.connect(self._on_source)
        self._first = choices[0][1]
        """What a system prompt of its own is put into."""
        self.system_prompt = LinesField(2, self)
        self.system_prompt.setPlainText(self._first.system_prompt)
        self.system_prompt.setPlaceholderText(tr("How the model is to answer in this chat"))
        self.system_prompt.textChanged.connect(self.changed)
        self.system_prompt.hide()
        self.temperature = NumberField(_HEAT, self)
        self.temperature.setValue(settings.sampling.temperature)
        label = QLabel(tr("Temperature"), self)
        self._remove = IconButton("close", "", self)
        self._remove.setObjectName("small")
        self._remove.clicked.connect(self.removed)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self._title)
        row.addWidget(self.source, 1)
        row.addWidget(label)
        row.addWidget(self.temperature)
        row.addWidget(self._remove)
        rows = QVBoxLayout(self)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setSpacing(4)
        rows.addLayout(row)
        rows.addWidget(self.system_prompt)

    def set_place(self, place: int, *, can_remove: bool) -> None:
        """Which column it is, for the eye and for a screen reader."""
        title = tr("Column {place}").format(place=place)
        self._title.setText(title)
        self.source.setAccessibleName(tr("Settings of column {place}").format(place=place))
        self.temperature.setAccessibleName(tr("Temperature of column {place}").format(place=place))
        prompt = tr("System prompt of column {place}").format(place=place)
        self.system_prompt.setAccessibleName(prompt)
        self._remove.set_label(tr("Remove column {place}").format(place=place))
        self._remove.setEnabled(can_remove)

    def settings(self) -> ChatSettings:
        """What the column is asked with."""
        settings = self._source()
        heat = round(self.temperature.value(), _HEAT.decimals)
        return replace(settings, sampling=replace(settings.sampling, temperature=heat))

    @property
    def _has_own_prompt(self) -> bool:
        return self.source.currentIndex() == len(self._choices)

    def _source(self) -> ChatSettings:
        if self._has_own_prompt:
            return replace(self._first, system_prompt=self.system_prompt.toPlainText())
        return self._choices[self.source.currentIndex()][1]

    def _on_source(self) -> None:
        if not self._has_own_prompt:  # the temperature is the column's own then, too
            self.temperature.setValue(self._source().sampling.temperature)
        self.system_prompt.setVisible(self._has_own_prompt)
        self.changed.emit()
