"""The menus of the list: of one chat or several, of a folder, of a program's request. GUI thread.

They are filled anew each time from what they are opened for, and only say what is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from engine.runs import Run
from studio.models.chat import Conversation
from studio.models.folder import Folder
from studio.services.run_service import Steer
from studio.views.run_sentences import is_held
from studio.views.sidebar.row_actions import RowActions
from studio.views.steer_menu import PriorityMenu, first_words, may_go_first
from studio.views.words import plural, tr


class ChatMenu(QMenu):
    """One for the whole list."""

    def __init__(self, actions: RowActions, parent: QWidget) -> None:
        super().__init__(parent)
        self._do = actions
        self.can_split = True
        """Whether there is room for one more pane."""
        self._steered: Run | None = None
        self._priorities = PriorityMenu(self)
        self._priorities.wanted.connect(self._set_priority)

    def open_for_chats(self, chats: Sequence[Conversation], spot: QPoint) -> None:
        """Open at a place on the screen."""
        self.clear()
        if all(chat.deleted_s is not None for chat in chats):
            self._add_deleted(chats)
        else:
            self._add_chats(chats)
        self.popup(spot)

    def open_for_folder(self, folder: Folder, spot: QPoint) -> None:
        """The same for a folder."""
        self.clear()
        do = self._do
        self._add(tr("New chat here"), lambda: do.new_chat_in(folder))
        self._add(tr("New folder in it"), lambda: do.new_folder(folder.folder_id))
        self._add(tr("Rename"), lambda: do.rename(folder))
        self.addSeparator()
        for step, words, keys in ((-1, tr("Move up"), "Alt+Up"), (1, tr("Move down"), "Alt+Down")):
            shift = self._add(words, partial(do.shift_folder, folder, step))
            shift.setEnabled(do.can_shift(folder, step))
            shift.setShortcut(QKeySequence(keys))
            shift.setShortcutContext(
                Qt.ShortcutContext.WidgetShortcut
            )  # the list itself takes them
        self.addSeparator()
        self._add(tr("Delete the folder, keep its chats"), lambda: do.delete_folder(folder))
        self.popup(spot)

    def open_for_run(self, run: Run, spot: QPoint) -> None:
        """The same for a program's request."""
        self.clear()
        self._add_steering(run)
        self.popup(spot)

    def _add_chats(self, chats: Sequence[Conversation]) -> None:
        do, one = self._do, chats[0] if len(chats) == 1 else None
        if one is not None:
            self._add(tr("Rename"), lambda: do.rename(one))
            beside = self._add(tr("Open beside"), lambda: do.split_wanted.emit(one))
            beside.setEnabled(self.can_split)
            self._add(tr("Open in its own window"), lambda: do.window_wanted.emit(one))
            self._add(tr("Duplicate"), lambda: do.duplicate(one))
            self.addSeparator()
            if (run := do.run_of(one)) is not None:
                self._add_steering(run)
                self.addSeparator()
        is_pinned = all(chat.is_pinned for chat in chats)
        is_archived = all(chat.is_archived for chat in chats)
        self._add(
            _for(chats, tr("Unpin") if is_pinned else tr("Pin")),
            lambda: do.pin(chats, is_pinned=not is_pinned),
        )
        self._add_folders(chats)
        self._add(
            _for(chats, tr("Take out of the archive") if is_archived else tr("Archive")),
            lambda: do.archive(chats, is_archived=not is_archived),
        )
        export = self._add(_for(chats, tr("Export…")), lambda: do.export_wanted.emit(chats))
        export.setEnabled(any(chat.last_status is not None for chat in chats))
        self.addSeparator()
        self._add(_for(chats, tr("Delete")), lambda: do.delete(chats))

    def _add_folders(self, chats: Sequence[Conversation]) -> None:
        do = self._do
        menu = self.addMenu(_for(chats, tr("Move to folder")))
        outside = menu.addAction(tr("No folder"))
        outside.triggered.connect(lambda: do.move(chats, None))
        outside.setEnabled(any(chat.folder_id is not None for chat in chats))
        for folder, depth in do.folders():
            entry = menu.addAction("    " * depth + folder.name.replace("&", "&&"))
            entry.setEnabled(any(chat.folder_id != folder.folder_id for chat in chats))
            entry.triggered.connect(lambda _=False, to=folder.folder_id: do.move(chats, to))
        menu.addSeparator()
        menu.addAction(tr("New folder")).triggered.connect(lambda: do.move_to_new_folder(chats))

    def _add_deleted(self, chats: Sequence[Conversation]) -> None:
        self._add(_for(chats, tr("Bring back")), lambda: self._do.restore(chats))
        self.addSeparator()
        self._add(_for(chats, tr("Delete for good…")), lambda: self._do.delete_for_good(chats))

    def _add_steering(self, run: Run) -> None:
        def steer(what: Steer) -> Callable[[], None]:
            return lambda: self._do.steer(run, what)

        if may_go_first(run):
            self._add(first_words(run), steer(Steer.GO_FIRST))
        can_park = self._do.can_park()
        self._add(tr("Park now"), steer(Steer.PARK)).setEnabled(can_park and not is_held(run))
        pin = self._add(tr("Never park"), steer(Steer.UNPIN if run.is_pinned else Steer.PIN))
        pin.setCheckable(True)
        pin.setChecked(run.is_pinned)
        pin.setEnabled(can_park)
        self._steered = run
        self._priorities.show_run(run)
        self.addMenu(self._priorities)
        self._add(tr("Stop"), steer(Steer.STOP))

    def _set_priority(self, steer: Steer) -> None:
        if self._steered is not None:
            self._do.steer(self._steered, steer)

    def _add(self, text: str, do: Callable[[], object]) -> QAction:
        action = self.addAction(text)
        action.triggered.connect(lambda _=False: do())
        return action


def _for(chats: Sequence[Conversation], text: str) -> str:
    """Says how many it is for, where it is for several."""
    if len(chats) == 1:
        return text
    what = text.removesuffix("…")
    chats_words = plural(len(chats), "1 chat", "{count} chats")
    return tr("{what} ({chats})").format(what=what, chats=chats_words) + text[len(what) :]
