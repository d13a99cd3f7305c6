"""Folders of chats, which may lie in one another.

Plain state, owned by the GUI thread; no Qt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(slots=True, eq=False, kw_only=True)
class Folder:
    """One folder. Its chats know it by its id."""

    folder_id: int
    name: str
    parent_id: int | None = None
    """The folder that it lies in; None: at the top."""
    place: int = 0
    """Its order among the folders beside it."""
    is_open: bool = True
    """Whether the list shows what is in it."""


def lies_within(folders: Mapping[int, Folder], folder_id: int | None, outer_id: int) -> bool:
    """Whether a folder is `outer_id` or lies in it, at any depth."""
    seen: set[int] = set()
    while folder_id is not None and folder_id in folders and folder_id not in seen:
        if folder_id == outer_id:
            return True
        seen.add(folder_id)
        folder_id = folders[folder_id].parent_id
    return False
