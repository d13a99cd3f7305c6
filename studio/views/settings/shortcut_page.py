"""The settings' page of shortcuts: every command with its keys, to change, switch off, or set back. GUI thread."""

from __future__ import annotations

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QKeySequenceEdit,
    QLabel,
    QLineEdit,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from studio.models.errors import SettingError
from studio.views.actions import COMMANDS, Command, CommandId, Menu, plain
from studio.views.error_words import error_words
from studio.views.labels import dress
from studio.views.shortcuts import KEYS_SETTING, Shortcuts, refusal, shown
from studio.views.words import tr

_FIELD_PX = 190


class ShortcutPage(QWidget):
    """Keys that somebody else has are not taken: the row says whose they are."""

    keys: tuple[str, ...] = (KEYS_SETTING,)

    def __init__(self, shortcuts: Shortcuts, parent: QWidget) -> None:
        super().__init__(parent)
        self._shortcuts = shortcuts
        self.rows: dict[CommandId, ShortcutRow] = {}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(12)
        help_line = QLabel(
            tr("Click a field and press the new keys. An empty field switches the keys off."), self
        )
        help_line.setObjectName("secondary")
        help_line.setWordWrap(True)
        layout.addWidget(help_line)
        for menu in Menu:
            head = QLabel(plain(tr(menu.value)), self)
            head.setObjectName("title")
            layout.addWidget(head)
            for command in COMMANDS:
                if command.menu is menu:
                    self.rows[command.id] = row = ShortcutRow(command, shortcuts, self)
                    layout.addWidget(row)

    def refresh(self) -> None:
        """Show the keys that hold now."""
        for row in self.rows.values():
            row.refresh()


class ShortcutRow(QWidget):
    """One command."""

    def __init__(self, command: Command, shortcuts: Shortcuts, parent: QWidget) -> None:
        super().__init__(parent)
        self.command = command
        self._shortcuts = shortcuts
        name = plain(tr(command.text))
        label = QLabel(name, self)
        label.setWordWrap(True)
        self.field = QKeySequenceEdit(self)
        self.field.setMaximumSequenceLength(1)
        self.field.setClearButtonEnabled(True)
        self.field.setFixedWidth(max(_FIELD_PX, 11 * self.fontMetrics().height()))
        self.field.setAccessibleName(tr("Keys for {command}").format(command=name))
        self._name_inner_parts(name)
        label.setBuddy(self.field)
        self.reset = QPushButton(tr("Reset"), self)
        self.reset.setObjectName("quiet")
        self.reset.setAccessibleName(tr("Reset the keys for {command}").format(command=name))
        self.reset.setAutoDefault(False)
        kept = self.reset.sizePolicy()
        kept.setRetainSizeWhenHidden(True)
        self.reset.setSizePolicy(kept)
        self.note = QLabel(self)
        self.note.setWordWrap(True)
        line = QHBoxLayout()
        line.setSpacing(8)
        line.addWidget(label, 1)
        line.addWidget(self.field)
        line.addWidget(self.reset)
        layout = QGridLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setVerticalSpacing(2)
        layout.addLayout(line, 0, 0)
        layout.addWidget(self.note, 1, 0)
        self.field.editingFinished.connect(self._on_finished)
        self.field.keySequenceChanged.connect(self._on_cleared)
        self.reset.clicked.connect(lambda: self._change(command.keys))
        self.refresh()

    def refresh(self) -> None:
        """Show the keys that hold now, and no complaint of before."""
        keys = self._shortcuts.keys[self.command.id]
        self.field.blockSignals(True)
        self.field.setKeySequence(QKeySequence(keys[0]) if keys else QKeySequence())
        self.field.blockSignals(False)
        self.reset.setVisible(self._shortcuts.is_changed(self.command))
        also = tr("also {keys}").format(keys=shown(keys[1:])) if keys[1:] else ""
        self._say(also, name="secondary")

    def _name_inner_parts(self, name: str) -> None:
        for inner in self.field.findChildren(QLineEdit):
            inner.setAccessibleName(tr("Keys for {command}").format(command=name))
            for button in inner.findChildren(QToolButton):
                button.setAccessibleName(
                    tr("Switch off the keys for {command}").format(command=name)
                )

    def _on_cleared(self, keys: QKeySequence) -> None:
        if keys.isEmpty() and self._shortcuts.keys[self.command.id]:
            self._change(())

    def _on_finished(self) -> None:
        keys = self.field.keySequence().toString(QKeySequence.SequenceFormat.PortableText)
        now = self._shortcuts.keys[self.command.id]
        if not keys or (now and QKeySequence(now[0]) == QKeySequence(keys)):
            return
        why_not = refusal(keys, self.command)
        owner = self._shortcuts.owner_of(keys, but=self.command.id)
        if owner is not None:
            sentence = tr("{keys} already does “{command}”; change that one first.")
            why_not = sentence.format(keys=shown((keys,)), command=plain(tr(owner.text)))
        if why_not:
            self.refresh()
            self._say(why_not, name="failed")
        else:
            self._change((keys,))

    def _change(self, keys: tuple[str, ...]) -> None:
        clash = next(
            (one for key in keys if (one := self._shortcuts.owner_of(key, but=self.command.id))),
            None,
        )
        if clash is not None:
            sentence = tr("“{command}” has these keys now; change that one first.")
            self._say(sentence.format(command=plain(tr(clash.text))), name="failed")
            return
        try:
            self._shortcuts.change(self.command.id, keys)
        except SettingError as error:
            self._say(error_words(error), name="failed")
        else:
            self.refresh()

    def _say(self, text: str, *, name: str) -> None:
        dress(self.note, name)
        self.note.setText(text)
        self.note.setVisible(bool(text))
