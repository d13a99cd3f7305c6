"""Settings of chats, and presets: settings with a name that any chat may take. GUI thread, asyncio, no Qt."""

from __future__ import annotations

from dataclasses import replace

from studio.models.chat import Conversation
from studio.models.chat_settings import ChatSettings, Preset
from studio.models.one_line import one_line
from studio.models.signal import Signal
from studio.models.undo import Undo, UndoKind
from studio.services.chat_book import ChatBook
from studio.services.chat_records import ChatRecords
from studio.services.history_lists import HistoryLists


class PresetService:
    """`presets` by name. Methods that wait raise StoreError, having changed nothing."""

    def __init__(self, book: ChatBook, records: ChatRecords, lists: HistoryLists) -> None:
        self.presets: list[Preset] = []
        self.changed: Signal[[]] = Signal()
        self._book = book
        self._records = records
        self._lists = lists

    async def load(self) -> None:
        """Read the presets."""
        self.presets = await self._lists.load_presets()

    def find(self, preset_id: int | None) -> Preset | None:
        """The preset of this id, if there is one."""
        return next((one for one in self.presets if one.preset_id == preset_id), None)

    def preset_of(self, chat: Conversation) -> Preset | None:
        """The preset that the chat's settings were taken from last."""
        return self.find(chat.preset_id)

    def is_changed(self, chat: Conversation) -> bool:
        """Whether the chat's settings are other than those of its preset, or of a new chat."""
        preset = self.preset_of(chat)
        return chat.settings != (preset.settings if preset is not None else ChatSettings())

    def set_settings(self, chat: Conversation, settings: ChatSettings) -> None:
        """How the chat's next reply is asked; saved with the next tick."""
        if settings != chat.settings:
            chat.settings = settings
            self._tell(chat)

    def apply(self, chat: Conversation, preset: Preset | None) -> None:
        """Let the chat have the settings of a preset; None: those of a new chat."""
        chat.settings = preset.settings if preset is not None else ChatSettings()
        chat.preset_id = preset.preset_id if preset is not None else None
        self._tell(chat)

    async def save_as(self, chat: Conversation, name: str) -> Preset | None:
        """Make the chat's settings a preset; one of that name is replaced, a blank name is ignored."""
        name = one_line(name)
        if not name:
            return None
        known = next((one for one in self.presets if one.name.casefold() == name.casefold()), None)
        preset_id = known.preset_id if known is not None else 0
        preset = await self._put(Preset(preset_id=preset_id, name=name, settings=chat.settings))
        chat.preset_id = preset.preset_id
        self._tell(chat)
        return preset

    async def rename(self, preset: Preset, name: str) -> None:
        """Give a preset another name; a blank one, or one that is taken, is ignored."""
        name = one_line(name)
        is_taken = any(
            one.name.casefold() == name.casefold() and one.preset_id != preset.preset_id
            for one in self.presets
        )
        if name and not is_taken:
            await self._put(replace(preset, name=name))

    async def delete(self, preset: Preset) -> None:
        """Delete a preset; chats keep the settings they took from it. It can be undone."""
        await self._lists.delete_preset(preset.preset_id)
        self._replace(preset.preset_id, None)

        async def back() -> None:
            await self._put(preset)

        undo = Undo(kind=UndoKind.PRESET_DELETED, run=back, name=preset.name)
        self._book.undo_offered.emit(undo)

    async def _put(self, preset: Preset) -> Preset:
        stored = replace(preset, preset_id=await self._lists.put_preset(preset))
        self._replace(stored.preset_id, stored)
        return stored

    def _replace(self, preset_id: int, preset: Preset | None) -> None:
        others = [one for one in self.presets if one.preset_id != preset_id]
        new = [*others, preset] if preset is not None else others
        self.presets = sorted(new, key=lambda one: one.name.casefold())
        self.changed.emit()

    def _tell(self, chat: Conversation) -> None:
        self._records.save_chat(chat)
        self._book.chat_changed.emit(chat)
