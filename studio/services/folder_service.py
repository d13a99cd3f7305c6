"""The folders of chats: new, rename, move, open, delete. GUI thread, asyncio, no Qt."""

from __future__ import annotations

from studio.models.chat import Conversation
from studio.models.folder import Folder, lies_within
from studio.models.one_line import one_line
from studio.models.signal import Signal
from studio.models.undo import Undo, UndoKind
from studio.services.chat_book import ChatBook
from studio.services.chat_records import ChatRecords
from studio.services.history_lists import HistoryLists


class FolderService:
    """`folders` by id. Methods that wait raise StoreError, having changed nothing."""

    def __init__(self, book: ChatBook, records: ChatRecords, lists: HistoryLists) -> None:
        self.folders: dict[int, Folder] = {}
        self.changed: Signal[[]] = Signal()
        self._book = book
        self._records = records
        self._lists = lists

    async def load(self) -> None:
        """Read the folders; chats whose folder is lost, and folders that lie in each other, lie at the top."""
        self.folders = {one.folder_id: one for one in await self._lists.load_folders()}
        for folder in self.folders.values():
            if folder.parent_id is not None and self._cannot_lie_in(folder, folder.parent_id):
                folder.parent_id = None
        for chat in (*self._book.chats, *self._book.deleted):
            if chat.folder_id not in self.folders:
                chat.folder_id = None

    def inside(self, parent_id: int | None) -> list[Folder]:
        """The folders in a folder, or at the top, in their order."""
        own = [one for one in self.folders.values() if one.parent_id == parent_id]
        return sorted(own, key=lambda one: (one.place, one.folder_id))

    async def new(self, name: str, *, parent_id: int | None = None) -> Folder:
        """Add a folder behind the others in `parent_id`; a parent that is gone is the top."""
        parent_id = parent_id if parent_id in self.folders else None
        place = max((one.place for one in self.inside(parent_id)), default=-1) + 1
        folder = Folder(folder_id=0, name=one_line(name) or name, parent_id=parent_id, place=place)
        folder.folder_id = await self._lists.add_folder(folder)
        self.folders[folder.folder_id] = folder
        self.changed.emit()
        return folder

    async def rename(self, folder: Folder, name: str) -> None:
        """Give a folder a name; a blank one is ignored."""
        name = one_line(name)
        if name and name != folder.name:
            folder.name = name
            await self._save(folder)

    async def set_open(self, folder: Folder, *, is_open: bool) -> None:
        """Show or hide what is in a folder."""
        if folder.is_open != is_open:
            folder.is_open = is_open
            await self._save(folder)

    async def move(self, folder: Folder, parent_id: int | None) -> bool:
        """Put a folder into another one, behind those there; None: to the top. False if it cannot lie there."""
        if parent_id is not None and self._cannot_lie_in(folder, parent_id):
            return False
        if parent_id != folder.parent_id:
            folder.place = max((one.place for one in self.inside(parent_id)), default=-1) + 1
            folder.parent_id = parent_id
            await self._save(folder)
        return True

    async def place(self, folder: Folder, beside: Folder, *, is_after: bool) -> bool:
        """Put a folder before or after another one, where that lies. False if it cannot lie there."""
        if folder is beside:
            return False
        parent_id = beside.parent_id
        if parent_id is not None and self._cannot_lie_in(folder, parent_id):
            return False
        order = [one for one in self.inside(parent_id) if one is not folder]
        order.insert(order.index(beside) + is_after, folder)
        folder.parent_id = parent_id
        for place, one in enumerate(order):
            one.place = place
        self.changed.emit()
        await self._lists.save_folders(order)
        return True

    async def shift(self, folder: Folder, step: int) -> bool:
        """Put a folder before the one above it (-1) or after the one below it (1); False where there is none."""
        order = self.inside(folder.parent_id)
        place = order.index(folder) + step
        if not 0 <= place < len(order):
            return False
        return await self.place(folder, order[place], is_after=step > 0)

    async def delete(self, folder: Folder) -> None:
        """Delete a folder; its chats and folders go to where it lay. It can be undone."""
        if self.folders.get(folder.folder_id) is not folder:
            return
        every = (*self._book.chats, *self._book.deleted)
        chats = [chat for chat in every if chat.folder_id == folder.folder_id]
        inner = self.inside(folder.folder_id)
        del self.folders[folder.folder_id]
        await self._put_into(folder.parent_id, chats, inner)
        await self._lists.delete_folder(folder.folder_id)

        async def back() -> None:
            await self._lists.add_folder(folder)
            self.folders[folder.folder_id] = folder
            await self._put_into(folder.folder_id, chats, inner)

        undo = Undo(kind=UndoKind.FOLDER_DELETED, run=back, number=len(chats), name=folder.name)
        self._book.undo_offered.emit(undo)

    async def _put_into(
        self, folder_id: int | None, chats: list[Conversation], folders: list[Folder]
    ) -> None:
        for one in folders:
            one.parent_id = folder_id
        for chat in chats:
            chat.folder_id = folder_id
            self._records.save_chat(chat)
        self.changed.emit()
        await self._lists.save_folders(folders)
        await self._records.flush()

    async def _save(self, folder: Folder) -> None:
        self.changed.emit()
        await self._lists.save_folders([folder])

    def _cannot_lie_in(self, folder: Folder, parent_id: int) -> bool:
        is_lost = parent_id not in self.folders
        return is_lost or lies_within(self.folders, parent_id, folder.folder_id)
