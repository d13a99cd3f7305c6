"""What a transcript has drawn anew while it grows and is scrolled: what came, and not what was there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QPaintEvent, QRegion
from PySide6.QtWidgets import QWidget

from studio.models.chat import Conversation, Message, MessageStatus, Role
from studio.views.chat.chat_view import ChatView
from studio.views.chat.kit import Kit
from studio.views.frame_ticker import FrameTicker
from studio.views.theme import Theme

GROWS, TALLER_PX = 20, 500


class Drawn(QObject):
    """Pixels of a widget that were drawn, by paint event."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.pixels: list[int] = []
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QPaintEvent):
            self.pixels.append(_num_pixels(event.region()))
        return False


def _num_pixels(region: QRegion) -> int:
    return sum(box.width() * box.height() for box in region)


@pytest.fixture
def view(kit: Kit, page: QWidget, qtbot: Any) -> Iterator[ChatView]:
    """A transcript of 700 x 500 with a reply that is being written, at its end."""
    chat = Conversation(1, "Long", 0.0, 0.0, is_loaded=True)
    for number in range(20):
        role = Role.ASSISTANT if number % 2 else Role.USER
        chat.messages.append(Message(number + 1, 1, role, "Some words. " * 60, 0.0))
    chat.messages[-1].status = MessageStatus.WRITING
    shown = ChatView(chat, kit, FrameTicker(page), page)
    shown.resize(700, TALLER_PX)
    shown.show()
    bar = shown.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum())
    yield shown
    shown.close_view()


def test_a_growing_reply_has_no_more_drawn_than_its_last_paragraph(
    view: ChatView, page: QWidget, qtbot: Any
) -> None:
    transcript = view.widget()
    reply = view.rows.sections[-1].message
    qtbot.waitUntil(lambda: view.rows.num_made > 0)
    view.clearFocus()  # the ring around it would be drawn anew with what it lies over
    page.repaint()
    drawn, bar = Drawn(transcript), view.verticalScrollBar()
    for number in range(GROWS):
        before, num_paints = bar.maximum(), len(drawn.pixels)
        reply.text += f"\n\nParagraph {number}."
        view.mark_changed(reply.message_id)
        qtbot.waitUntil(lambda before=before: bar.maximum() > before)
        qtbot.waitUntil(lambda num_paints=num_paints: len(drawn.pixels) > num_paints)
    whole = view.viewport().width() * view.viewport().height()
    assert bar.value() == bar.maximum()
    assert sum(drawn.pixels) < GROWS * whole / 3


def test_the_transcript_covers_what_is_below_it(view: ChatView, theme: Theme) -> None:
    """It says that it does, so that scrolling copies: then it must."""
    picture = view.widget().grab().toImage()
    assert picture.pixelColor(2, picture.height() // 2) == theme.colors.window
