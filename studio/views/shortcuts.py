"""Which keys do which command: the commands' own, with what the user has changed. GUI thread.

Changes live in one setting and count at once. Keys that a text needs, or that lie on one bare key, are refused: nothing
is done, let alone destroyed, because a hand lay on the keyboard.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence

from studio.models.window_settings import read_keys, write_keys
from studio.services.settings_service import SettingsService
from studio.views.actions import COMMANDS, Command, CommandId
from studio.views.words import tr

KEYS_SETTING = "window.keys"
_MODIFIERS = (
    Qt.KeyboardModifier.ControlModifier
    | Qt.KeyboardModifier.AltModifier
    | Qt.KeyboardModifier.MetaModifier
)


class Shortcuts:
    """`keys` of every command as they are now."""

    def __init__(self, settings: SettingsService) -> None:
        self._settings = settings

    @property
    def keys(self) -> dict[CommandId, tuple[str, ...]]:
        changes = self._changes()
        return {each.id: changes.get(each.id.value, each.keys) for each in COMMANDS}

    def is_changed(self, command: Command) -> bool:
        return command.id.value in self._changes()

    def owner_of(self, keys: str, *, but: CommandId) -> Command | None:
        """The other command that these keys do already."""
        wanted = QKeySequence(keys)
        for command in COMMANDS:
            if command.id is not but and any(
                QKeySequence(one) == wanted for one in self.keys[command.id]
            ):
                return command
        return None

    def change(self, command_id: CommandId, keys: tuple[str, ...]) -> None:
        """Give a command these keys, none to switch it off. Raises SettingError where the file cannot be written."""
        own = next(each.keys for each in COMMANDS if each.id is command_id)
        changes = self._changes()
        changes.pop(command_id.value, None)
        if keys != own:
            changes[command_id.value] = keys
        self._settings.change(KEYS_SETTING, write_keys(changes))

    def _changes(self) -> dict[str, tuple[str, ...]]:
        return read_keys(self._settings.settings.window.keys)


def shown(keys: tuple[str, ...]) -> str:
    """All keys of a command as the system writes them; empty for none."""
    texts = (QKeySequence(one).toString(QKeySequence.SequenceFormat.NativeText) for one in keys)
    return tr(" or ").join(texts)


def refusal(keys: str, command: Command) -> str:
    """Why these keys cannot do a command, as a sentence; empty if they can, as its own can."""
    sequence = QKeySequence(keys)
    if sequence.isEmpty():
        return tr("These are no keys.")
    first = sequence[0]  # type: ignore[index]  # the stubs lack it
    is_function = Qt.Key.Key_F1 <= first.key() <= Qt.Key.Key_F35
    is_safe = is_function or first.key() == Qt.Key.Key_Escape
    if not is_safe and not first.keyboardModifiers() & _MODIFIERS:
        return tr("A key alone is for writing; add Ctrl or Alt.")
    own = [QKeySequence(one) for one in command.keys]
    if sequence not in own and any(sequence == QKeySequence(one) for one in _OF_TEXTS):
        return tr("These keys are for editing text.")
    return ""


_OF_TEXTS = ("Ctrl+A", "Ctrl+C", "Ctrl+V", "Ctrl+X", "Ctrl+Z", "Ctrl+Y", "Ctrl+Shift+Z")
