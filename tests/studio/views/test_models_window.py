"""The window of models: rows that say what is so, buttons that ask for it, settings with a truthful fit."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QMessageBox,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QWidget,
)
from shiboken6 import isValid

from engine.api import EngineState, KvType
from fakes.fake_engine import TINY_MODEL
from fakes.fake_window import ENTRY, Stage, open_stage, until
from fakes.file_server import file_server
from fakes.shots import head, shoot
from studio.models.downloads import DownloadState, Offer
from studio.models.errors import FetchUnavailable, LibraryError, ServerStartError
from studio.models.load_choices import LoadChoices
from studio.models.model_library import Finder, FoundModel, ModelFacts, ModelSource
from studio.services.hub_search import HubModel, HubSearch
from studio.views.actions import CommandId
from studio.views.models.models_window import ModelsPage, ModelsWindow
from studio.views.words import tr

Play = Callable[[Coroutine[Any, Any, None]], None]
INFO = replace(
    TINY_MODEL,
    parameters=135_000_000,
    size_bytes=98_000_000,
    license="mit",
    kv_values_per_token=11520,
)
GONE = replace(ENTRY, name="gone", path=Path("/media/gone.gguf"), is_missing=True)
OWN = replace(ENTRY, name="own", path=Path("/models/own.gguf"), source=ModelSource.FETCHED)


@asynccontextmanager
async def open_models(tmp_path: Path) -> AsyncIterator[tuple[Stage, ModelsWindow]]:
    async with open_stage(tmp_path, titles=("A",)) as stage:
        stage.models.entries = (ENTRY, GONE, OWN)
        stage.models.facts = {ENTRY.path: ModelFacts(info=INFO)}
        stage.window.commands[CommandId.MODELS].trigger()
        window = stage.window.models_window.dialog
        assert isinstance(window, ModelsWindow)
        yield stage, window


def words_of(widget: QWidget) -> str:
    return " ".join(label.text() for label in widget.findChildren(QLabel) if not label.isHidden())


def unnamed(window: QWidget) -> list[str]:
    """Controls that a screen reader could not name."""
    kinds = (QAbstractButton, QLineEdit, QAbstractItemView, QPlainTextEdit, QComboBox, QProgressBar)
    found = []
    for kind in (*kinds, QAbstractSpinBox):
        for widget in window.findChildren(kind):
            interface = QAccessible.queryAccessibleInterface(widget)
            name = interface.text(QAccessible.Text.Name) if interface else ""
            inner = widget.objectName().startswith("qt_") or isinstance(
                widget.parent(), QAbstractSpinBox | QComboBox
            )
            if widget.isVisible() and not inner and not name.strip():
                found.append(f"{type(widget).__name__} {widget.objectName()}")
    return found


def test_rows_say_facts_and_their_buttons_do_what_is_said(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_models(tmp_path) as (stage, window):
            rows = window.library.rows
            assert list(rows) == ["tiny", "gone", "own"]
            said = words_of(rows["tiny"])
            for part in ("llama", "135 M parameters", "98 MB", "chat template", "MIT", "Loaded"):
                assert part in said
            assert "/media/gone.gguf" in words_of(rows["gone"])
            assert rows["gone"].main.text() == "Where is it?"
            rows["tiny"].main.click()
            rows["own"].main.click()
            await until(lambda: ("unload", "") in stage.models.asked)
            await until(lambda: ("load", "own") in stage.models.asked)
            assert ("look_around", "") in stage.models.asked

    play(story())


def test_the_loaded_model_has_its_row_also_without_its_file_or_the_library(
    play: Play, tmp_path: Path
) -> None:
    outside = replace(
        ENTRY, name=str(ENTRY.path), source=ModelSource.OUTSIDE, is_missing=True, size_bytes=0
    )

    async def story() -> None:
        async with open_models(tmp_path) as (stage, window):
            stage.models.entries, stage.models.outside = (), (outside,)
            stage.models.library_changed.emit()
            (row,) = window.library.rows.values()
            said = words_of(window.library)
            assert "no model yet" not in said
            assert row.main.text() == tr("Unload")
            text = tr("Its file {path} is not there any more. It works on until it is unloaded.")
            assert text.format(path=ENTRY.path) in words_of(row)
            assert tr("Loaded") in words_of(row)
            row.main.click()
            await until(lambda: ("unload", "") in stage.models.asked)
            stage.models.say(EngineState.NO_MODEL)
            assert row.main.text() == tr("Where is it?")
            assert tr("Missing") in words_of(row)
            stage.models.outside = (replace(outside, is_missing=False),)
            stage.models.library_changed.emit()
            row.main.click()
            await until(lambda: ("load", str(ENTRY.path)) in stage.models.asked)
            row.fill_menu()
            add = next(one for one in row.menu.actions() if one.text() == tr("Add to the library"))
            add.trigger()
            await until(lambda: ("add", str(ENTRY.path)) in stage.models.asked)

    play(story())


def test_a_suggested_model_whose_file_is_gone_can_be_downloaded_again(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_models(tmp_path) as (stage, window):
            offer = stage.models.catalog[0]
            gone = replace(
                OWN, name="mine", path=OWN.path.with_name(offer.file_name), is_missing=True
            )
            stage.models.entries = (gone,)
            stage.models.library_changed.emit()
            row = window.library.rows["mine"]
            assert row.main.text() == tr("Download again")
            button = window.sources.suggested.buttons[offer.file_name]
            window.sources.refresh()
            assert button.isEnabled(), "it is not in the library"
            row.fill_menu()
            texts = [one.text() for one in row.menu.actions()]
            assert tr("Take off the list") in texts
            assert tr("Delete…") not in texts
            row.main.click()
            await until(lambda: ("fetch", offer.name) in stage.models.asked)
            stage.models.say_fetching(1)
            assert not row.main.isEnabled()

    play(story())


def test_what_goes_wrong_is_said_in_the_window_in_which_it_was_asked_for(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_models(tmp_path) as (stage, window):
            assert not window.notice_bar.isVisible()
            words = "another model is called {0} already; take another name"
            stage.services.notices.report(LibraryError(words.format("a")))
            assert window.notice_bar.isVisible()
            assert head(words) in window.notice_bar.words
            shoot(window, "models-notice")
            stage.services.notices.resolve(LibraryError.code)
            stage.services.notices.report(ServerStartError("port 1"))
            action = next(
                one
                for one in window.notice_bar.findChildren(QPushButton)
                if one.text() == tr("Open the server's page")
            )
            shoot(window, "models-notice")
            action.click()
            assert stage.window.server_window.dialog is not None

    play(story())


def test_an_own_file_is_deleted_only_after_a_question_with_its_size(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_models(tmp_path) as (stage, window):
            for name in ("own", "tiny"):
                row = window.library.rows[name]
                row.fill_menu()
                row.menu.actions()[-1].trigger()
            await until(lambda: ("remove", "tiny") in stage.models.asked)
            assert ("remove", "own") not in stage.models.asked
            box = window.library.findChild(QMessageBox)
            assert "98 MB become free" in box.informativeText()
            next(b for b in box.buttons() if b.text() == "Delete").click()
            await until(lambda: ("remove", "own") in stage.models.asked)

    play(story())


def test_found_models_can_be_used_where_they_lie(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_models(tmp_path) as (stage, window):
            found = FoundModel(
                name="llama3", path=tmp_path / "blob", size_bytes=10**9, finder=Finder.OLLAMA
            )
            stage.models.found = (found,)
            stage.models.library_changed.emit()
            (row,) = window.library.found_rows
            assert "Ollama" in words_of(row)
            row.button.click()
            await until(lambda: ("add_found", "llama3") in stage.models.asked)

    play(story())


def test_load_settings_are_kept_for_their_model_and_tell_what_they_take(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_models(tmp_path) as (stage, window):
            dialog = window.library.open_load_settings("tiny")
            assert dialog is not None
            assert dialog.choices == LoadChoices()
            dialog.pool.setValue(8192)
            dialog.parallel.setValue(8)
            dialog.kv_type.setCurrentIndex(dialog.kv_type.findData(KvType.F32))
            dialog.chat_tokens.setValue(2000)
            assert "4 chats of 2,000 tokens fit, a fifth would park." in words_of(dialog)
            dialog.parallel.setValue(2)
            assert "“Requests at once” is 2: a third would wait in line." in words_of(dialog)
            await stage.settle()
            assert dialog._area.verticalScrollBar().maximum() == 0, "longer words have their room"
            dialog.pool.setValue((1 << 31) - 1)
            assert "Does not fit" in words_of(dialog)
            dialog.pool.setValue(31)
            assert not dialog.keep()
            assert "31" in words_of(dialog)
            dialog.pool.setValue(8192)
            dialog.keep_and_load()
            kept = LoadChoices(pool_tokens=8192, parallel=2, kv_type=KvType.F32)
            assert stage.models.load_settings.choices(ENTRY.path) == kept
            await until(lambda: ("carry on", "tiny") in stage.models.asked)
            again = window.library.open_load_settings("tiny")
            assert again is not None
            assert again.choices == kept
            again.reject()

    play(story())


def test_sources_are_off_until_they_are_switched_on(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_models(tmp_path) as (stage, window):
            window.show_page(ModelsPage.SOURCES)
            sources = window.sources
            assert [
                not source.body.isHidden()
                for source in (sources.suggested, sources.hub, sources.address)
            ] == [True, False, False]
            sources.hub.switch.click()
            sources.address.switch.click()
            assert not sources.hub.body.isHidden()
            assert stage.services.settings.settings.sources.hub
            sources.address.field.setText("https://a.example/x.zip")
            sources.address.get()
            assert "does not end in .gguf" in sources.address.problem.text()
            assert stage.services.downloads.downloads == ()

    play(story())


def test_what_the_hub_has_is_shown_and_what_it_says_no_to_too(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with open_models(tmp_path) as (_, window):
            window.show_page(ModelsPage.SOURCES)
            hub = window.sources.hub
            monkeypatch.setattr(
                HubSearch,
                "search",
                lambda *_: (HubModel(repository="org/One", downloads=1234, license="mit"),),
            )
            await hub.search("one")
            assert "1,234 downloads · MIT" in words_of(hub)

            def refuse(*_: object) -> None:
                raise FetchUnavailable("the hub did not answer: no network")

            monkeypatch.setattr(HubSearch, "offers", refuse)
            await hub.open_repository("org/One")
            assert "The hub did not answer: no network." in words_of(hub)

    play(story())


def test_the_window_may_be_closed_while_the_hub_is_asked(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = threading.Event()

    def late(*_: object) -> tuple[HubModel, ...]:
        assert answer.wait(60)
        return (HubModel(repository="org/One", downloads=1, license="mit"),)

    async def story() -> None:
        async with open_models(tmp_path) as (stage, window):
            monkeypatch.setattr(HubSearch, "search", late)
            hub = window.sources.hub
            stage.window.context.tasks.start(hub.search("one"))
            await until(lambda: not hub.button.isEnabled())
            window.close()
            await until(lambda: not isValid(hub))
            answer.set()
            await until(lambda: not stage.window.context.tasks.num_running)
            assert not stage.services.notices.notices.notices

    play(story())


def test_a_download_is_followed_paused_and_finished(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_models(tmp_path) as (stage, window):
            with file_server() as server:
                file = server.add("model.gguf", 200_000)
                file.holds_after = 100_000
                offer = Offer(name="model", files=(server.remote("model.gguf"),), source="here")
                stage.window.context.model_actions.download(offer)
                downloads = stage.services.downloads
                await until(lambda: downloads.downloads and downloads.downloads[0].done_bytes)
                window.downloads.refresh()
                assert window.pages.item(ModelsPage.DOWNLOADS).text() == tr(
                    "Downloads ({number})"
                ).format(number=1)
                (row,) = window.downloads.rows.values()
                row.main.click()
                await until(lambda: downloads.downloads[0].state is DownloadState.PAUSED)
                window.downloads.refresh()
                assert row.main.text() == tr("Go on")
                shoot(window, "s12-paused")
                file.holds_after = None
                file.go_on.set()
                row.main.click()
                await until(lambda: downloads.downloads[0].state is DownloadState.DONE)
                window.downloads.refresh()
                assert tr("{amount} · in the library").format(amount="").strip() in words_of(row)
                shoot(window, "s12-done")
                assert row.main.isHidden()
                await until(lambda: ("refresh", "") in stage.models.asked)

    play(story())


def test_the_list_of_pages_is_as_wide_as_its_words(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_models(tmp_path) as (stage, window):
            window.set_page_title(ModelsPage.DOWNLOADS, "Downloads (1,000)")
            for size in (14, 24):
                stage.services.settings.change("appearance.text_size", size)
                assert window.pages.sizeHintForColumn(0) <= window.pages.viewport().width()

    play(story())


def test_every_control_of_every_page_has_a_name(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_models(tmp_path) as (stage, window):
            for key in ("sources.hub", "sources.any_url"):
                stage.services.settings.change(key, True)
            for page in ModelsPage:
                window.show_page(page)
                assert unnamed(window) == []
            dialog = window.library.open_load_settings("tiny")
            assert dialog is not None
            assert unnamed(dialog) == []
            dialog.reject()
            assert window.findChildren(QPushButton)

    play(story())
