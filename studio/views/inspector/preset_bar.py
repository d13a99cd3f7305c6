"""The preset of a chat: which it is, taking another one, and saving, renaming and deleting presets. GUI thread."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any

from PySide6.QtCore import QPoint, QPointF, Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QMenu, QPushButton, QVBoxLayout, QWidget

from studio.models.chat import Conversation
from studio.models.chat_settings import Preset
from studio.services.preset_service import PresetService
from studio.views.icons import pixmap
from studio.views.tasks import Tasks
from studio.views.words import shortened, tr

_NAME_CHARS = 28
_ARROW_PX = 16


class _Naming(Enum):
    """What the name that is being written is for."""

    NEW = "new"
    RENAME = "rename"


class PresetBar(QWidget):
    """A button with a menu; a field below it while a name is written."""

    def __init__(self, presets: PresetService, tasks: Tasks, parent: QWidget) -> None:
        super().__init__(parent)
        self._presets = presets
        self._tasks = tasks
        self._chat: Conversation | None = None
        self._naming = _Naming.NEW
        self.button = _MenuButton(self)
        self.button.clicked.connect(self._open_menu)
        self.menu_of_presets = QMenu(self)
        self.name = _NameField(self)
        self.name.setAccessibleName(tr("Name of the preset"))
        self.name.setPlaceholderText(tr("Name of the preset"))
        self.name.returnPressed.connect(self._on_named)
        self.name.left.connect(self._end_naming)
        self._save = QPushButton(tr("Save"), self)
        self._save.clicked.connect(self._on_named)
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self.name, 1)
        row.addWidget(self._save)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self.button)
        layout.addLayout(row)
        self._end_naming()

    def show_chat(self, chat: Conversation | None) -> None:
        """Show which preset the chat's settings are from, and whether they have been changed since."""
        if chat is not self._chat:
            self._end_naming()
        self._chat = chat
        preset = self._presets.preset_of(chat) if chat is not None else None
        name = shortened(preset.name, _NAME_CHARS) if preset is not None else tr("Default")
        if chat is not None and self._presets.is_changed(chat):
            name = tr("{preset}, changed").format(preset=name)
        self.button.setText(name.replace("&", "&&"))
        self.button.setAccessibleName(tr("Preset: {preset}").format(preset=name))

    def _open_menu(self) -> None:
        self.fill_menu()
        self.menu_of_presets.setMinimumWidth(self.button.width())
        self.menu_of_presets.popup(self.button.mapToGlobal(QPoint(0, self.button.height() + 2)))

    def fill_menu(self) -> None:
        """Put into the menu what can be done now."""
        menu, chat = self.menu_of_presets, self._chat
        menu.clear()
        if chat is None:
            return
        mine = self._presets.preset_of(chat)
        self._add_preset(tr("Default"), None, is_checked=mine is None)
        for preset in self._presets.presets:
            self._add_preset(preset.name.replace("&", "&&"), preset, is_checked=preset is mine)
        menu.addSeparator()
        is_changed = self._presets.is_changed(chat)
        if mine is not None:
            name = shortened(mine.name, _NAME_CHARS).replace("&", "&&")
            save = self._add(tr("Save to “{preset}”").format(preset=name), self._save_changes)
            save.setEnabled(is_changed)
        self._add(tr("Save as a new preset…"), lambda: self._begin_naming(_Naming.NEW))
        if mine is not None:
            menu.addSeparator()
            self._add(tr("Rename…"), lambda: self._begin_naming(_Naming.RENAME))
            self._add(tr("Delete the preset"), lambda: self._start(self._presets.delete(mine)))

    def _add_preset(self, name: str, preset: Preset | None, *, is_checked: bool) -> None:
        action = self._add(name, lambda: self._apply(preset))
        action.setCheckable(True)
        action.setChecked(is_checked)

    def _add(self, text: str, do: Callable[[], object]) -> QAction:
        action = self.menu_of_presets.addAction(text)
        action.triggered.connect(lambda _=False: do())
        return action

    def _apply(self, preset: Preset | None) -> None:
        if self._chat is not None:
            self._presets.apply(self._chat, preset)

    def _save_changes(self) -> None:
        mine = self._presets.preset_of(self._chat) if self._chat is not None else None
        if self._chat is not None and mine is not None:
            self._start(self._presets.save_as(self._chat, mine.name))

    def _begin_naming(self, naming: _Naming) -> None:
        self._naming = naming
        mine = self._presets.preset_of(self._chat) if self._chat is not None else None
        is_rename = naming is _Naming.RENAME and mine is not None
        self.name.setText(mine.name if is_rename and mine is not None else "")
        for widget in (self.name, self._save):
            widget.show()
        self.name.setFocus(Qt.FocusReason.OtherFocusReason)
        self.name.selectAll()

    def _end_naming(self) -> None:
        for widget in (self.name, self._save):
            widget.hide()

    def _on_named(self) -> None:
        chat, name = self._chat, self.name.text()
        mine = self._presets.preset_of(chat) if chat is not None else None
        if chat is not None and self._naming is _Naming.NEW:
            self._start(self._presets.save_as(chat, name))
        elif mine is not None:
            self._start(self._presets.rename(mine, name))
        self._end_naming()
        self.button.setFocus(Qt.FocusReason.OtherFocusReason)

    def _start(self, work: Coroutine[Any, Any, Any]) -> None:
        self._tasks.start(work)


class _MenuButton(QPushButton):
    """Its arrow is ours, in the theme's colours."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("preset")

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        color, scale = self.palette().placeholderText().color(), self.devicePixelRatioF()
        painter = QPainter(self)
        corner = QPointF(self.width() - _ARROW_PX - 8, (self.height() - _ARROW_PX) / 2)
        painter.drawPixmap(corner, pixmap("chevron-down", color, _ARROW_PX, scale=scale))
        painter.end()


class _NameField(QLineEdit):
    """Escape leaves it."""

    left = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            super().keyPressEvent(event)
