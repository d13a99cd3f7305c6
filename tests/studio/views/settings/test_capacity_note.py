"""The pool's size in chats: what is said follows pool, seats and parking, and nothing is said where memory decides."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from studio.models.settings import Settings
from studio.views.settings.capacity_note import CapacityNote


def test_it_says_how_many_chats_fit(page: QWidget) -> None:
    note = CapacityNote(Settings(), page)
    assert note.isHidden()
    settings = Settings().with_value("engine.ctx_size", 8192).with_value("engine.parallel", 8)
    note.show_settings(settings)
    assert not note.isHidden()
    assert note.text() == "4 chats of 2,000 tokens fit, a fifth would park."
    note.show_settings(settings.with_value("engine.parallel", 2))
    limit = "“Requests at once” is 2: a third would wait in line."
    assert note.text() == f"4 chats of 2,000 tokens fit, {limit}"
    note.show_settings(settings.with_value("park.ram_mib", 0))
    assert "end for want of room" in note.text()
