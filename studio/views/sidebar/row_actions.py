"""What can be done with chats, folders and requests in the list: asked of the services, in tasks where that takes time.

GUI thread. Used by the menus, the keyboard, drag and drop, and the window's commands.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from engine.runs import Run
from studio.models.chat import Conversation
from studio.models.folder import Folder
from studio.services.run_service import Steer
from studio.views.context import Context
from studio.views.dialogs.confirm import Question, confirm
from studio.views.sidebar.list_rows import ChatRow, FolderRow, HeaderRow, Row, Section
from studio.views.status_words import title_words
from studio.views.words import plural, tr


class RowActions(QObject):
    """Changes show through the services' signals."""

    chosen = Signal(object)
    """A chat that is to be shown."""
    split_wanted = Signal(object)
    """The same, in a pane of its own."""
    export_wanted = Signal(object)
    """Chats that are to be written into a file."""
    window_wanted = Signal(object)
    """The same, in a window of its own."""
    found = Signal(object)
    """A folder that has moved and has the keyboard."""
    rename_wanted = Signal(object)
    """A chat or folder whose name the user wants to write."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self._context = context
        self._chats = context.services.chats
        self._window = parent

    # chats

    def rename(self, item: Conversation | Folder) -> None:
        """Let the user write another name."""
        self.rename_wanted.emit(item)

    def set_name(self, item: Conversation | Folder, name: str) -> None:
        """Give a chat or folder the name that the user has written."""
        if isinstance(item, Folder):
            self._start(self._chats.folders.rename(item, name))
        else:
            self._start(self._chats.rename(item, name))

    def pin(self, chats: Sequence[Conversation], *, is_pinned: bool) -> None:
        self._chats.shelf.pin(chats, is_pinned=is_pinned)

    def archive(self, chats: Sequence[Conversation], *, is_archived: bool) -> None:
        self._chats.shelf.archive(chats, is_archived=is_archived)

    def move(self, chats: Sequence[Conversation], folder_id: int | None) -> None:
        self._chats.shelf.move(chats, folder_id)

    def duplicate(self, chat: Conversation) -> None:
        """Copy a chat and show the copy."""

        async def work() -> None:
            copy = await self._chats.versions.duplicate(chat)
            if copy is not None:
                self.chosen.emit(copy)

        self._start(work())

    def delete(self, chats: Sequence[Conversation]) -> None:
        """Delete chats; the undo bar offers the way back."""
        if chats:
            self._start(self._chats.shelf.delete(chats))

    def restore(self, chats: Sequence[Conversation]) -> None:
        self._start(self._chats.shelf.restore(chats))

    def delete_for_good(self, chats: Sequence[Conversation]) -> None:
        """Ask, because it cannot be undone."""
        text = tr("Delete “{title}” for good?").format(title=title_words(chats[0]))
        if len(chats) > 1:
            text = plural(len(chats), "Delete 1 chat for good?", "Delete {count} chats for good?")
        question = Question(
            text=text, detail=tr("They cannot be brought back then."), do=tr("Delete for good")
        )
        work = self._chats.shelf.delete_for_good
        confirm(question, lambda: self._start(work(chats)), self._window)

    # folders

    def folders(self) -> list[tuple[Folder, int]]:
        """All folders in the order of the list, and how deep each lies."""
        service = self._chats.folders

        def walk(parent_id: int | None, depth: int) -> list[tuple[Folder, int]]:
            found: list[tuple[Folder, int]] = []
            for folder in service.inside(parent_id):
                found += [(folder, depth), *walk(folder.folder_id, depth + 1)]
            return found

        return walk(None, 0)

    def new_folder(self, parent_id: int | None = None) -> None:
        """Make a folder and let the user write its name."""
        self._start(self._new_folder(parent_id, ()))

    def move_to_new_folder(self, chats: Sequence[Conversation]) -> None:
        """The same, with these chats in it."""
        self._start(self._new_folder(None, chats))

    def delete_folder(self, folder: Folder) -> None:
        """Delete a folder and keep its chats; the undo bar offers the way back."""
        self._start(self._chats.folders.delete(folder))

    def place_folders(self, dragged: Sequence[Row], beside: Folder, *, is_after: bool) -> None:
        """Put dragged folders, in their order, before or after another one."""

        async def work() -> None:
            rows = [row for row in dragged if isinstance(row, FolderRow)]
            for row in reversed(rows) if is_after else rows:
                await self._chats.folders.place(row.folder, beside, is_after=is_after)

        self._start(work())

    def shift_folder(self, folder: Folder, step: int) -> None:
        """Put a folder one place up or down among those beside it; the keyboard stays on it."""

        async def work() -> None:
            if await self._chats.folders.shift(folder, step):
                self.found.emit(folder)

        self._start(work())

    def can_shift(self, folder: Folder, step: int) -> bool:
        """Whether there is a folder above or below it to change places with."""
        order = self._chats.folders.inside(folder.parent_id)
        return folder in order and 0 <= order.index(folder) + step < len(order)

    def set_open(self, folder: Folder, *, is_open: bool) -> None:
        self._start(self._chats.folders.set_open(folder, is_open=is_open))

    def new_chat_in(self, folder: Folder) -> None:
        """Show a new chat that lies in a folder."""

        async def work() -> None:
            await self._chats.folders.set_open(folder, is_open=True)
            self.chosen.emit(await self._chats.new_chat(folder_id=folder.folder_id))

        self._start(work())

    def drop(self, dragged: Sequence[Row], target: Row) -> None:
        """Put dragged chats and folders where the row is that they were dropped on."""
        chats = [row.chat for row in dragged if isinstance(row, ChatRow)]
        if isinstance(target, HeaderRow) and target.section is Section.PINNED:
            self.pin(chats, is_pinned=True)
            return
        folder_id = _folder_of(target)
        self.move(chats, folder_id)
        for row in dragged:
            if isinstance(row, FolderRow):
                self._start(self._chats.folders.move(row.folder, folder_id))

    # requests

    def run_of(self, chat: Conversation) -> Run | None:
        """Where the chat's running reply stands in the engine."""
        return self._context.watch.run_of(chat)

    def can_park(self) -> bool:
        """Whether anybody is ever parked."""
        return self._context.watch.others.can_park

    def steer(self, run: Run, steer: Steer) -> None:
        self._context.services.runs.steer(run.request_id, steer)

    async def _new_folder(self, parent_id: int | None, chats: Sequence[Conversation]) -> None:
        folder = await self._chats.folders.new(tr("New folder"), parent_id=parent_id)
        if chats:
            self.move(chats, folder.folder_id)
        parent = self._chats.folders.folders.get(parent_id or 0)
        if parent is not None:
            await self._chats.folders.set_open(parent, is_open=True)
        self.rename_wanted.emit(folder)

    def _start(self, work: Coroutine[Any, Any, Any]) -> None:
        self._context.tasks.start(work)


def _folder_of(row: Row) -> int | None:
    """The folder that what is dropped on a row goes to; None: out of all folders."""
    if isinstance(row, FolderRow):
        return row.folder.folder_id
    if isinstance(row, ChatRow) and row.section is Section.FOLDERS:
        return row.chat.folder_id
    return None
