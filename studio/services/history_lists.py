"""Folders and presets on disk: short lists, read whole. Asynchronous methods over the history's file. No Qt."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from studio.models.chat_settings import Preset
from studio.models.folder import Folder
from studio.services.history_file import HistoryFile, insert, transaction
from studio.services.history_rows import (
    FOLDER_COLUMNS,
    PRESET_COLUMNS,
    folder_from_row,
    folder_row,
    preset_from_row,
    preset_row,
    put_statement,
)

_PUT_FOLDER = put_statement("folders", FOLDER_COLUMNS)
_PUT_PRESET = put_statement("presets", PRESET_COLUMNS)


class HistoryLists:
    """A method that returns has committed; one that raises StoreError has changed nothing."""

    def __init__(self, file: HistoryFile) -> None:
        self._file = file

    async def load_folders(self) -> list[Folder]:
        """All folders."""
        query = f"SELECT {FOLDER_COLUMNS} FROM folders ORDER BY place, folder_id"
        rows = await self._file.do(lambda database: database.execute(query).fetchall())
        return [folder_from_row(row) for row in rows]

    async def add_folder(self, folder: Folder) -> int:
        """Store a new folder, or one that was deleted under its old id; returns its id."""
        row = (folder.folder_id or None, *folder_row(folder)[1:])
        return await self._file.do(lambda database: insert(database, _PUT_FOLDER, row))

    async def save_folders(self, folders: Sequence[Folder]) -> None:
        """Store folders as they are at the call, all or none."""
        rows = [folder_row(folder) for folder in folders]

        def put(database: sqlite3.Connection) -> None:
            with transaction(database):
                database.executemany(_PUT_FOLDER, rows)

        await self._file.do(put)

    async def delete_folder(self, folder_id: int) -> None:
        """Delete a folder; what lay in it must have been saved elsewhere. An unknown id is fine."""
        await self._delete("folders", "folder_id", folder_id)

    async def load_presets(self) -> list[Preset]:
        """All presets, by name."""
        query = f"SELECT {PRESET_COLUMNS} FROM presets ORDER BY name COLLATE NOCASE"
        rows = await self._file.do(lambda database: database.execute(query).fetchall())
        return [preset_from_row(row) for row in rows]

    async def put_preset(self, preset: Preset) -> int:
        """Store a preset; a new one has the id 0. Returns its id."""
        row = (preset.preset_id or None, *preset_row(preset)[1:])
        new_id = await self._file.do(lambda database: insert(database, _PUT_PRESET, row))
        return preset.preset_id or new_id

    async def delete_preset(self, preset_id: int) -> None:
        """Delete a preset; an unknown id is fine."""
        await self._delete("presets", "preset_id", preset_id)

    async def _delete(self, table: str, key: str, value: int) -> None:
        statement = f"DELETE FROM {table} WHERE {key} = ?"
        await self._file.do(lambda database: database.execute(statement, (value,)).rowcount)
