"""What the command palette offers: commands, chats and settings as one list, and which of them fit what was typed.

GUI thread; plain values. The order: what was chosen last, then how well the letters fit, then the order of the menus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from PySide6.QtGui import QAction

from studio.models.chat import Conversation
from studio.models.setting_field import SettingField
from studio.models.settings import all_settings
from studio.views.actions import Menu, plain
from studio.views.menu_actions import Actions
from studio.views.palette.fuzzy import fold, score
from studio.views.settings.setting_words import help_words
from studio.views.shortcuts import Shortcuts, shown
from studio.views.status_words import title_words
from studio.views.words import tr

MOST_RECENT = 8
_RECENT_WORTH = 4
_TOLD_WORTH = -1000
"""After everything whose name fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing to choose. `key` names it for the next time."""

    key: str
    text: str
    kind: str
    """Where it belongs, in words."""
    keys: str = ""
    told: str = ""
    """What it is, in more words: whoever types some of these finds it too."""
    do: Callable[[], object]


def matching(entries: Sequence[Entry], typed: str, recent: Sequence[str]) -> list[Entry]:
    """The entries that fit, the best first; with nothing typed the recent ones, then all in their own order."""
    worths = {key: len(recent) - place for place, key in enumerate(recent)}
    found = []
    for place, entry in enumerate(entries):
        worth = worths.get(entry.key, 0)
        if typed.strip():
            fit = score(typed, entry.text)
            if fit is None and (wider := score(typed, f"{entry.kind} {entry.text}")) is not None:
                fit = wider - 10
            if fit is None and fold(typed.strip()) in fold(entry.told):
                fit = _TOLD_WORTH
            if fit is None:
                continue
            worth = fit + (_RECENT_WORTH if worth else 0)
        found.append((-worth, place, entry))
    return [entry for _, _, entry in sorted(found, key=lambda one: one[:2])]


def with_newest(recent: Sequence[str], key: str) -> tuple[str, ...]:
    """The recent ones after `key` was chosen."""
    return (key, *(one for one in recent if one != key))[:MOST_RECENT]


def command_entries(actions: Actions, shortcuts: Shortcuts) -> list[Entry]:
    """Every command that can be used now, but for the palette itself."""
    keys = shortcuts.keys
    kinds = {menu: plain(tr(menu.value)) for menu in Menu}
    return [
        Entry(
            key=f"command {command.id.value}",
            text=plain(tr(command.text)),
            kind=kinds[command.menu],
            keys=shown(keys[command.id][:1]),
            do=_trigger(actions[command.id]),
        )
        for command in actions.commands
        if actions[command.id].isEnabled() and command.id.value != "palette"
    ]


def chat_entries(
    chats: Iterable[Conversation], show: Callable[[Conversation], object]
) -> list[Entry]:
    """Every chat by its title."""
    kind = tr("Go to chat")
    return [
        Entry(key=f"chat {chat.chat_id}", text=title_words(chat), kind=kind, do=_with(show, chat))
        for chat in chats
    ]


def setting_entries(show: Callable[[str], object]) -> list[Entry]:
    """Every setting that has a place in the settings."""
    kind = tr("Setting")
    return [
        Entry(
            key=f"setting {declared.key}",
            text=tr(declared.info.title),
            kind=kind,
            told=help_words(declared.info),
            do=_with_key(show, declared),
        )
        for declared in all_settings()
        if not declared.info.is_hidden
    ]


def _trigger(action: QAction) -> Callable[[], object]:
    return lambda: action.trigger()


def _with(show: Callable[[Conversation], object], chat: Conversation) -> Callable[[], object]:
    return lambda: show(chat)


def _with_key(show: Callable[[str], object], declared: SettingField) -> Callable[[], object]:
    return lambda: show(declared.key)
