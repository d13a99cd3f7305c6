"""Export and import from the window: every form of file, what came of it in words, and no HTML that is carried out."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from PySide6.QtCore import QPoint, QTimer
from PySide6.QtWidgets import QApplication, QFileDialog, QPushButton

from fakes.fake_window import Stage, open_stage, until
from studio.models.chat import NEW_CHAT_TITLE
from studio.models.errand import Errand
from studio.models.window_settings import Language
from studio.services.exchange.importing import MOST_CHATS, ImportReport
from studio.views.actions import CommandId
from studio.views.exchange_actions import report_words
from studio.views.pdf_file import to_pdf
from studio.views.sidebar.chat_list import ChatList
from studio.views.sidebar.chat_menu import ChatMenu
from studio.views.sidebar.list_rows import ChatRow, Section
from studio.views.translation import Catalogue, read_catalogue

Play = Callable[[Coroutine[Any, Any, None]], None]


def notice(stage: Stage) -> str:
    notices = stage.services.notices.notices.notices
    return notices[0].text if notices else ""


@pytest.mark.parametrize("ending", ["md", "json", "pdf"])
def test_a_chat_is_exported_in_the_form_that_is_asked_for(
    play: Play, tmp_path: Path, ending: str
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon",)) as stage:
            request_id = await stage.ask(stage.chats.chats[0], "Plan it")
            stage.engine.say(request_id, "Day **one**")
            stage.engine.finish(request_id)
            await until(lambda: stage.chats.chats[0].running_message is None)
            stage.window.commands[CommandId.EXPORT_CHAT].trigger()
            dialog = stage.window.findChild(QFileDialog)
            target = tmp_path / f"out.{ending}"
            dialog.fileSelected.emit(str(target))
            dialog.reject()
            await until(target.exists)
            await until(lambda: str(target) in notice(stage))
            content = target.read_bytes()
            assert content.startswith({"md": b"# ", "json": b"{", "pdf": b"%PDF"}[ending])

    play(story())


def test_while_it_is_written_that_is_said_and_the_next_dialog_opens_where_it_went(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_asked, may_go_on = asyncio.Event(), asyncio.Event()

    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon",)) as stage:
            chat, exchange = stage.chats.chats[0], stage.chats.exchange
            write = exchange.export_markdown

            async def held(*args: Any, **options: Any) -> None:
                is_asked.set()
                await may_go_on.wait()
                await write(*args, **options)

            monkeypatch.setattr(exchange, "export_markdown", held)
            actions, there = stage.window.app.exchange, tmp_path / "there"
            there.mkdir()
            dialog = actions.export_chat(chat)
            assert Path(dialog.directory().path()) != there
            dialog.fileSelected.emit(str(there / "lisbon.md"))
            dialog.reject()
            await is_asked.wait()
            assert notice(stage) == "Writing lisbon.md"
            may_go_on.set()
            await until(lambda: notice(stage).startswith("Exported to"))
            for ask in (lambda: actions.export_chat(chat), actions.export_all):
                dialog = ask()
                assert Path(dialog.directory().path()) == there
                dialog.reject()
            shutil.rmtree(there)
            dialog = actions.export_chat(chat)
            assert Path(dialog.directory().path()) not in (there, Path.cwd())
            dialog.reject()

    play(story())


def test_what_went_wrong_is_said_alone(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon",)) as stage:
            actions, in_the_way = stage.window.app.exchange, tmp_path / "file"
            in_the_way.write_text("no folder")
            actions._start_export(stage.chats.chats, in_the_way / "a.md", "")
            await until(lambda: notice(stage) == "Chats were not exported or imported")
            assert len(stage.services.notices.notices.notices) == 1

    play(story())


@pytest.mark.parametrize("how", ["time", "another chat"])
def test_where_a_chat_was_exported_to_is_not_said_for_ever(
    play: Play, tmp_path: Path, how: str
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Oslo", "Lisbon")) as stage:
            exchange, target = stage.window.app.exchange, tmp_path / "out.md"
            await exchange.export(stage.chats.chats[:1], target)
            assert str(target) in notice(stage)
            if how == "time":
                exchange.findChild(QTimer).timeout.emit()
            else:
                stage.window.commands[CommandId.NEXT_CHAT].trigger()
            await until(lambda: not notice(stage))

    play(story())


def test_a_chat_without_a_title_is_exported_under_its_name_in_german(
    play: Play, tmp_path: Path, qapp: QApplication
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=(NEW_CHAT_TITLE,)) as stage:
            catalogue = Catalogue(read_catalogue(Language.GERMAN), qapp)
            qapp.installTranslator(catalogue)
            dialog = stage.window.app.exchange.export_chat(stage.chats.chats[0])
            qapp.removeTranslator(catalogue)
            assert Path(dialog.selectedFiles()[0]).name == "Neuer Chat.md"
            dialog.reject()

    play(story())


def test_an_empty_chat_is_not_offered_for_export(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon",)) as stage:
            export = stage.window.commands[CommandId.EXPORT_CHAT]
            await until(lambda: stage.window.commands[CommandId.RENAME_CHAT].isEnabled())
            assert not export.isEnabled()
            await stage.ask(stage.chats.chats[0], "Plan it")
            await until(export.isEnabled)

    play(story())


def test_several_chats_of_the_list_go_into_one_file(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C")) as stage:
            rows = [ChatRow(chat=chat, section=Section.TODAY) for chat in stage.chats.chats[:2]]
            sidebar = stage.window.findChild(ChatList)
            sidebar.menu_wanted.emit(rows, QPoint(0, 0))
            menu = stage.window.findChild(ChatMenu)
            assert not next(one for one in menu.actions() if "Export" in one.text()).isEnabled()
            await stage.ask(rows[0].chat, "Something to export")
            sidebar.menu_wanted.emit(rows, QPoint(0, 0))
            export = next(one for one in menu.actions() if "Export" in one.text())
            export.trigger()
            dialog, target = stage.window.findChild(QFileDialog), tmp_path / "two.json"
            assert dialog.windowTitle() == "Export 2 chats"
            dialog.fileSelected.emit(str(target))
            dialog.reject()
            await until(lambda: str(target) in notice(stage))
            titles = {chat["title"] for chat in json.loads(target.read_bytes())["chats"]}
            assert titles == {"B", "C"}

    play(story())


@pytest.mark.qt_log_ignore(r"does not support raise\(\)", extend=True)
def test_all_chats_go_out_but_temporary_ones_and_come_in_again(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        target = tmp_path / "all.json"
        async with open_stage(tmp_path / "a", titles=("A", "B")) as stage:
            await stage.chats.new_chat(is_temporary=True)
            stage.window.commands[CommandId.EXPORT_ALL].trigger()
            dialog = stage.window.findChild(QFileDialog)
            dialog.fileSelected.emit(str(target))
            dialog.reject()
            await until(lambda: str(target) in notice(stage))
        async with open_stage(tmp_path / "b") as stage:
            stage.window.app.receive(Errand(files=(target,)))
            await until(lambda: notice(stage) == "2 chats imported.")
            assert {chat.title for chat in stage.chats.chats} == {"A", "B", "New chat"}
            stage.window.commands[CommandId.IMPORT].trigger()
            dialog = stage.window.findChild(QFileDialog)
            dialog.fileSelected.emit(str(tmp_path / "none.json"))
            dialog.reject()
            await until(lambda: notice(stage) == "Chats were not exported or imported")

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    play(story())


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (ImportReport(num_new=1), "1 chat imported."),
        (ImportReport(), "0 chats imported."),
        (
            ImportReport(num_new=1200, num_known=1, num_broken=2),
            "1,200 chats imported; 1 was here already; 2 entries were damaged and left out.",
        ),
        (
            ImportReport(num_new=1, num_empty=1) + ImportReport(num_empty=2),
            "1 chat imported; 3 had not a word in them.",
        ),
        (
            ImportReport(num_new=2, num_left=1),
            "2 chats imported; 1 was left out, as you stopped it.",
        ),
    ],
)
def test_what_came_of_an_import(report: ImportReport, words: str) -> None:
    assert report_words(report) == words


def test_an_import_counts_and_can_be_stopped_and_a_notice_put_away_stays_away(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, said, spoken = tmp_path / "many.json", [], []
    messages = [{"id": 1, "role": "user", "text": "Hello"}]
    entries = [
        {"title": f"Chat {one}", "created_s": 1e9 + one, "messages": messages}
        for one in range(3 * MOST_CHATS)
    ]
    path.write_text(json.dumps({"format": "layby chats", "chats": entries}))
    monkeypatch.setattr("studio.views.main_window.say", lambda _window, text: spoken.append(text))

    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            bar, notices = stage.window.notice_bar, stage.services.notices

            def on_notices() -> None:
                said.append(bar.words)
                if bar.words.startswith(f"Importing chats: {MOST_CHATS} of"):
                    bar.findChild(QPushButton).click()

            disconnect = notices.notices.changed.connect(on_notices)
            stage.window.app.exchange.import_file(path)
            await until(lambda: "left out" in notice(stage))
            disconnect()
            assert f"Importing chats: 0 of {3 * MOST_CHATS}." in said
            assert "Reading many.json." in spoken
            assert not any(words.startswith("Importing") for words in spoken)
            there = len(stage.chats.chats) - 1
            left = 3 * MOST_CHATS - there
            assert there == MOST_CHATS
            words = f"{there} chats imported; {left} were left out, as you stopped it."
            assert notice(stage) == spoken[-1] == words

            def put_away() -> None:
                said.append(notice(stage))
                notices.resolve("chats_imported")

            said.clear()
            disconnect = notices.notices.changed.connect(put_away)
            stage.window.app.exchange.import_file(path)
            words = f"{left} chats imported; {there} were here already."
            await until(lambda: words in said)
            disconnect()
            assert [one for one in said if one] == ["Reading many.json", words]

    play(story())


@pytest.mark.qt_log_ignore(r"does not support raise\(\)", extend=True)
def test_several_files_are_imported_one_after_another_and_told_together(
    play: Play, tmp_path: Path
) -> None:
    path = tmp_path / "one.json"
    messages = [{"id": 1, "role": "user", "text": "Hello"}]
    chats = [{"title": "One", "created_s": 1e9, "messages": messages}]
    path.write_text(json.dumps({"format": "layby chats", "chats": chats}))

    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            stage.window.app.receive(Errand(files=(path, path)))
            await until(lambda: notice(stage) == "1 chat imported; 1 was here already.")
            stage.window.app.exchange.import_file(path)
            await until(lambda: notice(stage) == "0 chats imported; 1 was here already.")

    play(story())


def test_a_pdf_has_every_word_on_numbered_pages_and_carries_no_html_out(
    qapp: QApplication,
) -> None:
    body = "\n\n".join(f"## You\n\nParagraph {number}, " + "word " * 80 for number in range(60))
    text = f"# Title\n\n<script>x</script> ![p](file:///etc/passwd) ```\ncode\n```\n\n{body}"
    document = pypdfium2.PdfDocument(to_pdf(text, "Title", qapp.font().family()))
    pages = [page.get_textpage().get_text_range() for page in document]
    document.close()
    assert len(pages) > 3
    assert "<script>" in pages[0]
    assert all(f"{number} / {len(pages)}" in page for number, page in enumerate(pages, start=1))
    assert all(f"Paragraph {number}," in " ".join(pages) for number in range(60))
