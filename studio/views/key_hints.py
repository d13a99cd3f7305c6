"""Tool tips that tell the keys of what a button does, also after the user has changed them. GUI thread.

Must not import services.
"""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtWidgets import QWidget

from studio.views.actions import CommandId
from studio.views.shortcuts import shown

_COMMAND = "hint_command"
_LABEL = "hint_label"


def hint(widget: QWidget, label: str, command: CommandId) -> None:
    """Let the tool tip be the label and, once `tell_keys` knows them, the keys of the command."""
    widget.setProperty(_COMMAND, command.value)
    widget.setProperty(_LABEL, label)
    widget.setToolTip(label)
    widget.setAccessibleName(widget.accessibleName() or label)


def tell_keys(window: QWidget, keys: Mapping[CommandId, tuple[str, ...]]) -> None:
    """Bring the tool tips of everything in the window up to date."""
    for widget in window.findChildren(QWidget):
        if (command := widget.property(_COMMAND)) is not None:
            label = widget.property(_LABEL)
            keys_shown = shown(keys[CommandId(command)][:1])
            widget.setToolTip(f"{label}  {keys_shown}" if keys_shown else label)
