"""S10 and other mishaps in the real window: what was saved is there, and words say what happened and what next.

kill -9 with three chats; a full disk, a locked and a damaged history; a model's file that is missing, or goes while it
is loaded.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton

from engine.api import EngineState, SamplingParams
from fakes.at_once import NEVER_ENDS
from fakes.chat_rig import read_rows, until
from fakes.fake_window import Stage, open_stage
from fakes.real_window import RealWindow, open_real, paths_below
from fakes.shots import head, shoot
from fakes.tiny_files import write_tiny_gguf
from fakes.window_process import window_of
from studio.models.chat import MessageStatus
from studio.models.chat_settings import ChatSettings
from studio.views.actions import CommandId
from studio.views.chat.foot_view import MessageAction
from studio.views.main_window import MainWindow
from studio.views.models.models_window import ModelsWindow
from studio.views.words import tr

Play = Callable[[Coroutine[Any, Any, None]], None]
DISK_FULL = "there is no room left for the chat history {0}; make room"
LOCKED = "another program has locked the chat history {0}; close it there (a backup, a viewer of databases)"
MISSING = (
    "the file of the model {0} is missing: {1}; put it back, say where it lies now, download it again, or choose "
    "another model"
)
WORKS_ON = "Its file {path} is not there any more. It works on until it is unloaded."
PROMPTS = ("Tell me a long story about a ship", "List fifty animals", "Describe the four seasons")
SHORT = ChatSettings(
    sampling=SamplingParams(temperature=0.8, seed=3, logit_bias=NEVER_ENDS), max_tokens=60
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_tiny_gguf(tmp_path / "model")


def told(window: MainWindow) -> str:
    """What the bar over the chat says, with its button."""
    bar = window.notice_bar
    if not bar.isVisible():
        return ""
    buttons = [each.text() for each in bar.findChildren(QPushButton) if each.isVisible()]
    return " ".join((bar.words, *(f"[{text}]" for text in buttons)))


def killed_while_three_write(home: Path, model: Path) -> dict[int, str]:
    """What each chat had on screen when its process was killed, and some of each was on disk."""
    heard: dict[int, str] = {}
    saved = "SELECT text FROM messages WHERE role = 'assistant' AND length(text) > 100"
    with window_of("window_driver", home, model, *PROMPTS) as process:
        assert process.stdout is not None
        while len(heard) < 3 or len(read_rows(paths_below(home).history_file, saved)) < 3:
            fact = json.loads(process.stdout.readline())
            if fact["text"]:
                heard[fact["chat"]] = fact["text"]
        process.kill()
        process.wait()
    return heard


@pytest.mark.slow
@pytest.mark.xdist_group("served")
def test_s10_after_kill_9_three_chats_are_there_interrupted_and_can_be_continued(
    play: Play, tmp_path: Path, starter_model: Path
) -> None:
    heard = killed_while_three_write(tmp_path, starter_model)
    (tmp_path / "config").mkdir(exist_ok=True)

    async def story() -> None:
        async with open_real(tmp_path, engine__ctx_size=2048) as real:
            chats = real.services.chats.chats
            assert [chat.title for chat in reversed(chats)] == list(PROMPTS)
            await real.shoot("s10-after-kill")
            for chat in chats:
                await real.window.panes.show_chat(chat)
                prompt, reply = chat.messages
                assert prompt.text in PROMPTS
                assert reply.status is MessageStatus.INTERRUPTED
                assert reply.text[:100] == heard[chat.chat_id][:100]
            await real.settle()
            reply = real.pane.chat.messages[-1]
            saved = reply.text
            assert await real.services.models.load(str(starter_model))
            foot = real.pane.transcript.foot_of(reply)
            foot.take_focus()
            button = foot.buttons[MessageAction.CONTINUE]
            await until(button.isEnabled)
            await real.shoot("s10-continue")
            real.gate.shut_at(1, 20)
            button.click()
            await until(lambda: real.gate.is_shut)
            reply = real.pane.chat.messages[-1]
            await until(lambda: len(reply.text) > len(saved))
            assert reply.text.startswith(saved)
            await real.shoot("s10-continued")
            real.services.chats.stop(real.pane.chat)
            real.gate.open()
            await until(lambda: not real.services.runs.snapshot().runs)

    play(story())
    assert read_rows(paths_below(tmp_path).history_file, "PRAGMA integrity_check") == [("ok",)]


async def set_most_pages(stage: Stage, number: int) -> None:
    """SQLite answers that the disk is full beyond so many pages."""
    file = stage.chats._store.file
    await file.do(lambda db: db.execute(f"PRAGMA max_page_count = {number}").fetchone())


def saved_replies(folder: Path) -> list[tuple[str]]:
    query = "SELECT text FROM messages WHERE role = 'assistant'"
    return read_rows(folder / "history.sqlite", query)


def test_s10_a_full_disk_is_a_banner_and_no_loss(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon",)) as stage:
            window, pane = stage.window, stage.window.panes.active
            request_id = await stage.ask(pane.chat, "Before it was full")
            stage.engine.start(request_id)
            await set_most_pages(stage, 1)
            text = f"{'-' * 90}x\n\n" * 1_000
            stage.engine.say(request_id, text)
            await until(
                lambda: tr("The disk is full: chats are not saved").split(":")[0] in told(window)
            )
            assert head(DISK_FULL) in told(window)
            stage.engine.finish(request_id)
            await until(lambda: pane.chat.running_message is None)
            prompt = "x" * 10_000
            pane.composer.set_text(prompt)
            QTest.keyClick(pane.composer.focusProxy(), Qt.Key.Key_Return)
            await until(lambda: not window.context.tasks.num_running)
            assert (pane.composer.text(), len(pane.chat.messages)) == (prompt, 2), "not sent"
            assert tr("The disk is full: chats are not saved").split(":")[0] in told(window)
            shoot(window, "s10-disk-full")
            await set_most_pages(stage, 1_000_000)
            await until(lambda: told(window) == "")
            await until(lambda: saved_replies(tmp_path) == [(text,)])
            shoot(window, "s10-room-again")

    play(story())


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def test_a_locked_history_is_told_and_written_when_it_is_free(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon",)) as stage:
            window = stage.window
            patience = "PRAGMA busy_timeout = 1"
            await stage.chats._store.file.do(lambda db: db.execute(patience).fetchone())
            request_id = await stage.ask(window.panes.active.chat, "While it was locked")
            with locked(tmp_path / "history.sqlite"):
                stage.engine.start(request_id)
                stage.engine.say(request_id, "Nobody can write this down.")
                await until(lambda: head(LOCKED) in told(window))
                shoot(window, "history-locked")
            await until(lambda: told(window) == "")
            await until(lambda: saved_replies(tmp_path) == [("Nobody can write this down.",)])

    play(story())


def test_a_damaged_history_is_set_aside_and_the_window_says_where(
    play: Play, tmp_path: Path
) -> None:
    path = paths_below(tmp_path).history_file
    path.parent.mkdir()
    path.write_bytes(b"this was never a database" * 100)

    async def story() -> None:
        async with open_real(tmp_path) as real:
            await until(lambda: tr("The chat history was damaged") in told(real.window))
            assert "history.db.broken" in told(real.window)
            await real.shoot("history-damaged")

    play(story())


async def bring_in(real: RealWindow, model: Path, *, is_fetched: bool) -> tuple[str, Path]:
    """Link the model, or have it be what the library fetched; its name and where it lies."""
    models = real.services.models
    if is_fetched:
        offer, folder = models.catalog[0], models._library.folder
        os.renames(model, folder / offer.file_name)
        models._library.record_fetched(offer)
        await models.refresh()
        return offer.name, folder / offer.file_name
    entry = await models.add(model)
    assert entry is not None
    return entry.name, entry.path


@pytest.mark.parametrize("is_fetched", [False, True], ids=["linked", "fetched"])
def test_a_model_that_is_missing_at_the_start_is_told_with_a_way_on(
    play: Play, tmp_path: Path, model: Path, *, is_fetched: bool
) -> None:
    home, away = tmp_path / "home", tmp_path / "model.away"
    place = model

    async def first_run() -> None:
        nonlocal place
        async with open_real(home) as real:
            name, place = await bring_in(real, model, is_fetched=is_fetched)
            assert await real.services.models.load(name)

    async def story() -> None:
        async with open_real(home) as real:
            last = real.services.settings.settings.engine.model
            assert not await real.services.models.load(last)
            assert str(place) in told(real.window)
            assert head(MISSING) in told(real.window)
            assert tr("Open the models' page") in told(real.window)
            offers = [one.text() for one in real.pane.start_view.findChildren(QPushButton)]
            assert tr("Load {model}").format(model=last) not in offers
            await real.shoot(f"model-missing-{'fetched' if is_fetched else 'linked'}")
            real.type("kept")
            real.press_return()
            await until(lambda: tr("No model is ready") in told(real.window))
            assert real.pane.composer.text() == "kept"
            os.rename(away, place)
            await real.services.models.refresh()
            assert await real.services.models.load(last)
            assert told(real.window) == ""

    play(first_run())
    place.rename(away)
    play(story())


async def missing_row_of(real: RealWindow, model: Path, *, is_emptied: bool) -> None:
    """In the models' window the loaded one is told to work on, with a way to end that."""
    real.window.commands[CommandId.MODELS].trigger()
    dialog = real.window.models_window.dialog
    assert isinstance(dialog, ModelsWindow)
    await until(lambda: list(dialog.library.rows) == [str(model)])
    row = dialog.library.rows[str(model)]
    assert row.main.text() == tr("Unload")
    said = " ".join(one.text() for one in row.findChildren(QLabel) if not one.isHidden())
    assert (tr(WORKS_ON).format(path=model) in said) is not is_emptied
    shoot(dialog, f"models-{'emptied' if is_emptied else 'gone'}-while-loaded")
    dialog.close()


@pytest.mark.parametrize("is_emptied", [False, True], ids=["gone", "emptied"])
def test_a_model_whose_file_goes_while_it_is_loaded_writes_on_and_is_missed_at_the_next_load(
    play: Play, tmp_path: Path, model: Path, *, is_emptied: bool
) -> None:
    async def story() -> None:
        async with open_real(tmp_path / "home", engine__ctx_size=2048) as real:
            assert await real.services.models.load(str(model))
            await real.new_chat(SHORT)
            undisturbed = await real.send("Hello")
            await until(lambda: not undisturbed.status.is_alive)
            await real.new_chat(SHORT)
            real.gate.shut_at(1, 10)
            reply = await real.send("Hello")
            await until(lambda: real.gate.is_shut)
            os.truncate(model, 0) if is_emptied else os.unlink(model)
            real.gate.open()
            await until(lambda: not reply.status.is_alive)
            assert (reply.status, reply.text) == (MessageStatus.LENGTH, undisturbed.text)
            assert told(real.window) == ""
            await missing_row_of(real, model, is_emptied=is_emptied)
            assert not await real.services.models.load(str(model))
            assert tr("This model cannot be used") in told(real.window)
            way_on = tr("Choose a model") if is_emptied else tr("Open the models' page")
            assert f"[{way_on}]" in told(real.window)
            assert real.services.models.state is EngineState.READY, "the one that is loaded stays"
            await real.shoot(f"model-{'emptied' if is_emptied else 'gone'}-while-loaded")

    play(story())
