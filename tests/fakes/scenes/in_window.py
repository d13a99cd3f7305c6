"""Scenes in the main window, and in one that a chat has of its own."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QWidget,
)

from engine.runs import Holding, ParkUsage, RunState
from fakes.fake_window import Stage, until
from fakes.runs import make_run, make_wait
from fakes.scenes.talk import do, list_of
from studio.models.chat_settings import ChatSettings
from studio.models.errors import FetchUnavailable
from studio.services.notice_service import UNEXPECTED_NOTICE
from studio.views.actions import CommandId
from studio.views.chat.foot_view import MessageAction
from studio.views.sidebar.list_search import ListSearch
from studio.views.sidebar.search_field import SearchField

ODD_TITLES = ("Donaudampfschifffahrtsgesellschaft " * 6, "مرحبا بالعالم " * 8, "x" * 200)
BUDGET = ParkUsage(budget_bytes=1 << 33, used_bytes=26 << 20)


async def pool(stage: Stage) -> QWidget:
    """Four in all states, with what has been."""
    ids = [await stage.ask(chat, "And then?") for chat in stage.chats.chats]
    for id_ in ids[:2]:
        stage.engine.start(id_)
        stage.engine.say(id_, "Then")
    stage.engine.park(ids[1])
    stage.engine.publish(
        make_run(ids[0], is_pinned=True),
        make_run(
            ids[1],
            RunState.PARKED,
            wait=make_wait(holders=((ids[0], 640),)),
            expected_wait_s=(6.0, 10.0),
        ),
        make_run(ids[2], RunState.QUEUED, wait=make_wait(ahead=(ids[1],)), held_tokens=300),
        make_run("chatcmpl-3f2a1b9c"),
        parks=BUDGET,
        pool=replace(stage.engine.snapshot().pool, free_pages=18, reusable_pages=6),
        holdings=(
            Holding(request_ids=(ids[0], "chatcmpl-3f2a1b9c"), pages=8),
            Holding(request_ids=(ids[0],), pages=12),
            Holding(request_ids=("chatcmpl-3f2a1b9c",), pages=20),
        ),
    )
    do(stage, CommandId.POOL)
    await until(lambda: len(stage.window.pool_panel.rows) == 4)
    return stage.window


async def inspector(stage: Stage) -> QWidget:
    chat, presets = stage.chats.chats[0], stage.chats.presets
    stage.chats.presets.set_settings(chat, ChatSettings(system_prompt="Be brief.", stop=("END",)))
    await presets.save_as(chat, "Short answers")
    presets.set_settings(chat, replace(chat.settings, max_tokens=512))
    do(stage, CommandId.INSPECTOR)
    return stage.window


async def palette(stage: Stage, *, typed: str) -> QWidget:
    do(stage, CommandId.PALETTE)
    QTest.keyClicks(stage.window.app.palette.field, typed)
    return stage.window


async def edited(stage: Stage) -> QWidget:
    """A prompt with a second version, being edited again."""
    chat, pane = stage.chats.chats[0], stage.window.panes.active
    await stage.chats.versions.edit_reply(chat, chat.messages[1], "Two days are enough.")
    assert pane.transcript is not None
    foot = pane.transcript.foot_of(chat.messages[0])
    foot.make_buttons()
    foot.buttons[MessageAction.EDIT].click()
    return stage.window


async def found_in_chat(stage: Stage) -> QWidget:
    do(stage, CommandId.FIND)
    bar = stage.window.panes.active.find_bar
    bar.field.setText("day")
    bar.search()
    return stage.window


async def searched(stage: Stage, *, words: str) -> QWidget:
    do(stage, CommandId.SEARCH)
    QTest.keyClicks(stage.window.findChild(SearchField), words)
    await until(lambda: stage.window.findChild(ListSearch).is_complete)
    return stage.window


async def folders(stage: Stage) -> QWidget:
    work = await stage.chats.folders.new("Work")
    await stage.chats.folders.new("Letters", parent_id=work.folder_id)
    stage.chats.shelf.move([stage.chats.chats[1]], work.folder_id)
    stage.chats.shelf.pin([stage.chats.chats[2]], is_pinned=True)
    return stage.window


async def archive(stage: Stage) -> QWidget:
    stage.chats.shelf.archive([stage.chats.chats[1]])
    await stage.chats.delete(stage.chats.chats[2])
    do(stage, CommandId.ARCHIVED)
    await until(lambda: list_of(stage).model().rowCount() == 4)
    return stage.window


async def split(stage: Stage) -> QWidget:
    window = await pool(stage)
    do(stage, CommandId.POOL)
    await beside(stage)
    return window


async def beside(stage: Stage) -> None:
    """Put a second chat beside the first, where there is room."""
    if stage.window.commands[CommandId.SPLIT].isEnabled():
        await stage.window.panes.split(stage.chats.chats[1])


async def own_window(stage: Stage) -> QWidget:
    chat = stage.chats.chats[0]
    do(stage, CommandId.OWN_WINDOW)
    windows = stage.window.chat_commands.windows.windows
    await until(lambda: chat in windows and windows[chat].pane.chat is chat)
    return windows[chat]


async def attachments(stage: Stage) -> QWidget:
    pane, chat = stage.window.panes.active, stage.chats.chats[0]
    folder = stage.services.support._paths.cache
    folder.mkdir(parents=True)
    names = ("notes.txt", "trip.py", "A report with a rather long name of last summer.md")
    for name in names:
        (folder / name).write_text("some more words " * 40, encoding="utf-8")
    pane.attaching.attach([folder / name for name in names])
    await until(lambda: sum(file.num_tokens or 0 for file in chat.draft_attachments) > 300)
    pane.composer.focusProxy().setPlainText("What do these say?")
    return stage.window


async def temporary(stage: Stage) -> QWidget:
    do(stage, CommandId.NEW_TEMPORARY)
    await until(lambda: stage.window.panes.active.chat.is_temporary)
    return stage.window


async def notice(stage: Stage) -> QWidget:
    stage.services.notices.report(
        FetchUnavailable("the hub did not answer: nothing came for a while")
    )
    stage.services.notices.show(UNEXPECTED_NOTICE)
    return stage.window


async def odd_titles(stage: Stage) -> QWidget:
    for chat, title in zip(list(stage.chats.chats), ODD_TITLES, strict=True):
        await stage.chats.rename(chat, title)
    await beside(stage)
    return await pool(stage)
