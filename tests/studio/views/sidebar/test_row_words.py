"""What stands under a title has its room in the list, whatever the state, the language and the length of the list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from PySide6.QtCore import QLocale
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QApplication

from engine.runs import RunState
from fakes.runs import make_run, make_wait
from studio.models.chat import Conversation, Message, MessageStatus, ReplyStats, Role
from studio.models.length_limit import LengthLimit
from studio.models.window_settings import Language
from studio.services.reply_fold import MODEL_WAS_UNLOADED
from studio.views.elided_label import whole_parts
from studio.views.run_sentences import describe_row, describe_run
from studio.views.sidebar.conversation_list import WIDTH_PX
from studio.views.sidebar.conversation_row import words_room
from studio.views.status_words import StatusWords, describe_chat
from studio.views.theme import Theme
from studio.views.translation import Catalogue, read_catalogue

_SCROLL_BAR_PX = 12
"""As the style sheet has it."""
ROOM_PX = words_room(WIDTH_PX - _SCROLL_BAR_PX)
STATS = ReplyStats(prompt_tokens=34_000)
REPLY = Message(2, 1, Role.ASSISTANT, "", 0.0, stats=STATS)
ENDED = (
    *(replace(REPLY, status=MessageStatus.LENGTH, note=limit.value) for limit in LengthLimit),
    replace(REPLY, status=MessageStatus.LENGTH),
    replace(REPLY, status=MessageStatus.INTERRUPTED),
    replace(REPLY, status=MessageStatus.INTERRUPTED, note=MODEL_WAS_UNLOADED),
    replace(REPLY, status=MessageStatus.FAILED, note="no model was ready for it"),
)
ALIVE = (
    replace(REPLY, status=MessageStatus.READING, progress=0.5),
    replace(REPLY, status=MessageStatus.WRITING, stats=ReplyStats(tokens_per_s=1_234.0)),
    replace(REPLY, status=MessageStatus.TOOLS),
)
OUTSIDE = (RunState.QUEUED, RunState.PARKED, RunState.AWAITS_OWNER)
RUNS = (
    *(make_run("a", one, wait=make_wait(place=12), expected_wait_s=(6.0, 10.0)) for one in OUTSIDE),
    make_run("a", RunState.BEING_PARKED),
    make_run("a", RunState.BEING_RESTORED),
    make_run("a", RunState.READING, computed_tokens=2_000, held_tokens=34_000),
)


@pytest.fixture(params=[Language.ENGLISH, Language.GERMAN])
def language(request: pytest.FixtureRequest, qapp: QApplication) -> Iterator[Language]:
    catalogue, before = Catalogue(read_catalogue(request.param), qapp), QLocale()
    qapp.installTranslator(catalogue)
    yield request.param
    qapp.removeTranslator(catalogue)
    QLocale.setDefault(before)


def states() -> Iterator[StatusWords]:
    for reply in ENDED:
        chat = Conversation(1, "Lisbon", 0.0, 0.0, messages=[reply], has_unread=True)
        yield describe_chat(chat, 0.0)
    yield describe_chat(Conversation(-1, "Lisbon", 0.0, 0.0), 0.0)
    yield describe_chat(Conversation(1, "Lisbon", 0.0, 0.0, draft="Hello"), 0.0)
    for reply in ALIVE:
        yield describe_row(reply, None)
    for run in RUNS:
        yield describe_run(run)
        yield describe_row(replace(REPLY, status=MessageStatus.QUEUED), run)


def test_no_state_is_cut_in_the_list(qapp: QApplication, language: Language) -> None:
    theme = Theme(qapp)
    metrics = QFontMetrics(theme.font(theme.small_px))
    shown = {one.text: whole_parts(one.text, metrics, ROOM_PX) for one in states()}
    assert len(shown) > 12
    assert [text for text, seen in shown.items() if "…" in seen] == []
    assert [text for text, seen in shown.items() if not text.startswith(seen)] == []


def test_a_part_is_seen_whole_or_not_at_all_however_wide_the_row_is(qapp: QApplication) -> None:
    theme = Theme(qapp)
    metrics = QFontMetrics(theme.font(theme.small_px))
    text = "Ended at the limit set for replies · 300 tokens · 154 tok/s · parked 1 min 8 s"
    for width in range(200, 500):
        shown = whole_parts(text, metrics, width)
        assert text.startswith(f"{shown} ·") or shown == text
