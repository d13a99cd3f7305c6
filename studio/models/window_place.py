"""Where the window stood and which chats were in it, as one line of text for the settings file. Plain values, no Qt."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPlace:
    """As it was when the window was closed."""

    geometry: bytes
    """In Qt's own form."""
    chat_ids: tuple[int, ...]
    """The chats side by side, from the left."""


def write_place(place: WindowPlace) -> str:
    """The text that `read_place` reads."""
    return json.dumps(
        {
            "geometry": base64.b64encode(place.geometry).decode(),
            "chats": list(place.chat_ids),
        }
    )


def read_place(text: str) -> WindowPlace | None:
    """None for a text that is none."""
    try:
        data = json.loads(text)
        geometry = base64.b64decode(data["geometry"], validate=True)
        return WindowPlace(
            geometry=geometry,
            chat_ids=tuple(int(one) for one in data["chats"]),
        )
    except (ValueError, TypeError, KeyError, binascii.Error):
        return None
