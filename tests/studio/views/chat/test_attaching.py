"""Files come by button, drop and paste, show what they cost, and can be taken out; a picture is refused in words."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QColor, QDragEnterEvent, QDropEvent, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QPlainTextEdit, QWidget

from engine.api import Chat
from fakes.fake_window import Stage, open_stage, until
from fakes.shots import lay_out
from studio.models.attachment import Attachment, AttachmentKind
from studio.views.actions import CommandId
from studio.views.chat.attachment_bar import AttachmentBar, cost_words
from studio.views.chat.files_view import FilesView
from studio.views.icon_button import IconButton

Play = Callable[[Coroutine[Any, Any, None]], None]


def urls(*paths: Path) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return data


def shown(bar: AttachmentBar) -> str:
    return " ".join(one.text() for one in bar.findChildren(QLabel) if one.isVisible())


def notice(stage: Stage) -> str:
    notices = stage.services.notices.notices.notices
    return notices[0].detail if notices else ""


def test_files_are_chosen_shown_taken_out_and_sent(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        first, second = tmp_path / "a.py", tmp_path / "b.txt"
        first.write_text("x = 1")
        second.write_text("some more words")
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane, chat = stage.window.panes.active, stage.chats.chats[0]
            bar = pane.attaching.bar
            assert not bar.isVisible()
            stage.window.commands[CommandId.ATTACH].trigger()
            dialog = pane.findChild(QFileDialog)
            dialog.filesSelected.emit([str(first), str(second)])
            dialog.reject()
            await until(lambda: len(chat.draft_attachments) == 2)
            await until(lambda: "6 tokens" in shown(bar))
            assert "a.py" in shown(bar)
            assert "Code · 3 tokens" in shown(bar)
            remove = next(
                one
                for one in bar.findChildren(IconButton)
                if one.accessibleName() == "Remove b.txt"
            )
            remove.click()
            await until(lambda: "b.txt" not in shown(bar))
            send = pane.composer.findChild(IconButton, "send")
            assert send.isEnabled()
            send.click()
            await until(lambda: stage.engine.requests)
            (request,) = stage.engine.requests.values()
            assert isinstance(request.prompt, Chat)
            assert "x = 1" in request.prompt.messages[-1].content
            await until(lambda: not bar.isVisible())

    play(story())


@pytest.mark.parametrize("is_by_mouse", [True, False])
def test_after_files_were_chosen_the_keyboard_is_in_the_field(
    play: Play, tmp_path: Path, is_by_mouse: bool
) -> None:
    async def story() -> None:
        file = tmp_path / "a.py"
        file.write_text("x = 1")
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane, chat = stage.window.panes.active, stage.chats.chats[0]
            await until(lambda: pane.composer.focusProxy().hasFocus())
            if is_by_mouse:
                QTest.mouseClick(pane.attaching.button, Qt.MouseButton.LeftButton)
            else:
                pane.attaching.button.setFocus(Qt.FocusReason.TabFocusReason)
                QTest.keyClick(pane.attaching.button, Qt.Key.Key_Space)
            dialog = pane.findChild(QFileDialog)
            dialog.filesSelected.emit([str(file)])
            dialog.reject()
            await until(lambda: chat.draft_attachments)
            await until(lambda: stage.window.focusWidget() is pane.composer.focusProxy())

    play(story())


@pytest.mark.parametrize("target", ["pane", "field"])
def test_files_can_be_dropped(play: Play, tmp_path: Path, target: str) -> None:
    async def story() -> None:
        path = tmp_path / "a.txt"
        path.write_text("hello")
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane = stage.window.panes.active
            field = pane.composer.findChild(QPlainTextEdit)
            widget: QWidget = pane if target == "pane" else field.viewport()
            data = urls(path)
            copy, button = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
            keys = Qt.KeyboardModifier.NoModifier
            enter = QDragEnterEvent(QPoint(5, 5), copy, data, button, keys)
            QApplication.sendEvent(widget, enter)
            assert enter.isAccepted()
            QApplication.sendEvent(widget, QDropEvent(QPointF(5, 5), copy, data, button, keys))
            await until(lambda: stage.chats.chats[0].draft_attachments)
            assert pane.composer.text() == ""

    play(story())


def test_files_and_pictures_can_be_pasted_and_text_stays_text(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        path = tmp_path / "a.txt"
        path.write_text("hello")
        picture = QImage(4, 4, QImage.Format.Format_RGB32)
        picture.fill(QColor("red"))
        async with open_stage(tmp_path, titles=("A",)) as stage:
            field = stage.window.panes.active.composer.findChild(QPlainTextEdit)
            clipboard = QApplication.clipboard()
            clipboard.setMimeData(urls(path))
            field.paste()
            await until(lambda: stage.chats.chats[0].draft_attachments)
            clipboard.setImage(picture)
            field.paste()
            await until(lambda: "cannot see" in notice(stage))
            clipboard.setText("plain words")
            field.paste()
            assert field.toPlainText() == "plain words"
            clipboard.clear()

    play(story())


def test_files_of_another_chat_are_not_shown_here(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        path = tmp_path / "a.txt"
        path.write_text("hello")
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            pane = stage.window.panes.active
            top, other = stage.chats.chats
            pane.attaching.attach([path])
            await until(pane.attaching.bar.isVisible)
            await stage.window.panes.show_chat(other)
            assert not pane.attaching.bar.isVisible()
            await stage.window.panes.show_chat(top)
            assert pane.attaching.bar.isVisible()

    play(story())


def test_drafts_files_are_there_after_a_restart(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        path = tmp_path / "a.txt"
        path.write_text("hello")
        async with open_stage(tmp_path, titles=("A",)) as stage:
            stage.window.panes.active.attaching.attach([path])
            await until(lambda: stage.chats.chats[0].draft_attachments)
        async with open_stage(tmp_path) as stage:
            await until(stage.window.panes.active.attaching.bar.isVisible)

    play(story())


def test_many_long_names_wrap_and_do_not_widen_the_window(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            bar = stage.window.panes.active.attaching.bar
            least = stage.window.minimumSizeHint().width()
            files = tuple(
                Attachment(name=f"{number} " + "x" * 200, kind=AttachmentKind.PDF, num_tokens=1200)
                for number in range(20)
            )
            bar.show_files(files, 1)
            lay_out()
            assert stage.window.minimumSizeHint().width() <= max(least, 900)
            assert bar.height() > 3 * bar.findChild(QLabel).height()
            assert "20 files · 24,000 tokens · reading 1 file…" in shown(bar)

    play(story())


def test_what_went_with_a_prompt_stands_above_it(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        path = tmp_path / "a.py"
        path.write_text("x = 1")
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane, chat = stage.window.panes.active, stage.chats.chats[0]
            pane.attaching.attach([path])
            await until(lambda: chat.draft_attachments)
            await stage.ask(chat, "")
            await until(lambda: pane.findChild(FilesView) is not None)
            shown = pane.findChild(FilesView).accessibleName()
            assert shown == "Files: a.py · Code · 3 tokens"

    play(story())


def test_what_a_file_costs() -> None:
    file = Attachment(name="a", kind=AttachmentKind.PDF, num_tokens=1240)
    assert cost_words(file) == "PDF · 1,240 tokens"
    assert cost_words(Attachment(name="a", kind=AttachmentKind.TEXT)) == "Text · not counted yet"
