"""Chats leave and come back: nothing lost, nothing twice, and files that are none are told by name."""

from __future__ import annotations

import asyncio
import json
import zipfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.client import EngineClient
from fakes.fake_engine import FakeEngine
from studio.models.attachment import Attachment, AttachmentKind
from studio.models.chat import Conversation
from studio.models.errors import ExchangeError
from studio.services.chat_prompt import full_title
from studio.services.chat_service import ChatService
from studio.services.exchange.archive import read_chats
from studio.services.exchange.importing import MOST_CHATS, ImportReport, ImportRun
from studio.services.exchange.markdown_file import Labels, file_name, to_markdown
from studio.services.history_file import HistoryFile
from studio.services.history_store import HistoryStore
from studio.services.notice_service import NoticeService

CONVERSATION = {
    "title": "From elsewhere",
    "create_time": 1_700_000_000.0,
    "current_node": "u",
    "mapping": {
        "u": {
            "parent": None,
            "message": {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Hi"]}},
        }
    },
}  # fmt: skip


@asynccontextmanager
async def open_chats(folder: Path) -> AsyncIterator[tuple[ChatService, FakeEngine]]:
    engine = FakeEngine()
    client = EngineClient(engine, asyncio.get_running_loop())
    chats = ChatService(client, HistoryStore(folder / "history.db"), NoticeService())
    await chats.start()
    try:
        yield chats, engine
    finally:
        await chats.close()
        client.close()


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(story())


async def ask(chats: ChatService, chat: Conversation, text: str) -> None:
    assert await chats.send(chat, text)
    await ended(chat)


async def ended(chat: Conversation) -> None:
    async with asyncio.timeout(60):
        while chat.running_message is not None:  # noqa: ASYNC110 - the fake engine answers at once
            await asyncio.sleep(0.001)


def said(chat: Conversation) -> list[tuple[str, str, str, int | None]]:
    return [(one.role.value, one.text, one.status.value, one.parent_id) for one in chat.tree]


def test_chats_with_versions_folders_and_files_come_back_from_their_file(tmp_path: Path) -> None:
    async def story() -> None:
        target = tmp_path / "out.json"
        async with open_chats(tmp_path / "a") as (chats, _engine):
            folder = await chats.folders.new("Trips")
            inner = await chats.folders.new("Portugal", parent_id=folder.folder_id)
            chat = await chats.new_chat(folder_id=inner.folder_id)
            file = Attachment(name="a.txt", kind=AttachmentKind.TEXT, text="some text")
            await chats.drafts.attach(chat, file)
            await ask(chats, chat, "Plan it")
            await chats.turns.regenerate(chat, chat.messages[-1])
            await ended(chat)
            await ask(chats, chat, "More")
            await chats.exchange.export_json([chat], target)
            before = said(chat)
        async with open_chats(tmp_path / "b") as (chats, _engine):
            assert await chats.exchange.import_file(target) == ImportReport(num_new=1)
        async with open_chats(tmp_path / "b") as (chats, _engine):
            (chat,) = chats.chats
            await chats.open_chat(chat.chat_id)
            assert [one[:3] for one in said(chat)] == [one[:3] for one in before]
            assert chat.messages[0].text == "Plan it"
            assert chat.messages[-2].text == "More"
            assert chat.messages[0].attachments[0].text == "some text"
            names = {one.folder_id: one.name for one in chats.folders.folders.values()}
            assert names[chat.folder_id or 0] == "Portugal"

    run(story)


def test_importing_twice_adds_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        target = tmp_path / "out.json"
        async with open_chats(tmp_path / "a") as (chats, _engine):
            for text in ("One", "Two"):
                await ask(chats, await chats.new_chat(), text)
            await chats.exchange.export_json(chats.chats, target)
            assert await chats.exchange.import_file(target) == ImportReport(num_known=2)
            await ask(chats, chats.chats[0], "And it went on")
            assert await chats.exchange.import_file(target) == ImportReport(num_known=2)
            await chats.delete(chats.chats[0])
            assert await chats.exchange.import_file(target) == ImportReport(num_new=1, num_known=1)
            assert len({chat.chat_id for chat in chats.chats}) == 2

    run(story)


def test_a_chatgpt_zip_is_read_and_damage_counted(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations-000.json", json.dumps([CONVERSATION, {"mapping": 3}]))
        archive.writestr("conversations-001.json", json.dumps([CONVERSATION]))
        archive.writestr("user.json", "{}")
    reading = read_chats(path)
    assert (len(reading.chats), reading.num_broken) == (2, 1)

    async def story() -> None:
        async with open_chats(tmp_path / "a") as (chats, _engine):
            report = await chats.exchange.import_file(path)
            assert report == ImportReport(num_new=1, num_known=1, num_broken=1)
            assert chats.chats[0].title == "From elsewhere"

    run(story)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"{", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"format": "other"}', "holds no chats"),
        (b"[1, 2]", "holds no chats"),
        (b'{"format": "layby chats", "chats": 3}', "damaged"),
        (b"PK\x05\x06" + bytes(18), "no conversations.json"),
    ],
)
def test_a_file_that_is_none_is_told_by_name(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(ExchangeError, match=words) as caught:
        read_chats(path)
    assert "file.json" in str(caught.value)


def test_what_is_wrong_with_json_is_told_without_the_parsers_words(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_text('{"format": "layby chats",\n "chats": [{"title": "cut')
    with pytest.raises(ExchangeError) as caught:
        read_chats(path)
    assert str(caught.value) == (
        "cut.json is damaged or no JSON file (look at line 2, character 22)"
    )


def test_what_is_wrong_with_a_zip_file_is_told_without_the_librarys_words(tmp_path: Path) -> None:
    path = tmp_path / "cut.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", "[]")
    path.write_bytes(path.read_bytes().replace(b"[]", b"[ ", 1))
    with pytest.raises(ExchangeError, match="damaged or locked") as caught:
        read_chats(path)
    assert "CRC" not in str(caught.value)


def test_files_and_bombs_beyond_the_limit_are_refused(tmp_path: Path) -> None:
    large, bomb = tmp_path / "large.json", tmp_path / "bomb.zip"
    large.write_bytes(b" " * 3000)
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b" " * 5_000_000)
    for path in (large, bomb):
        with pytest.raises(ExchangeError, match="larger"):
            read_chats(path, most_bytes=2000)
    with pytest.raises(ExchangeError, match="cannot be read"):
        read_chats(tmp_path / "none.json")


def test_markdown_is_one_file_or_one_for_each(tmp_path: Path) -> None:
    async def story() -> None:
        async with open_chats(tmp_path / "a") as (chats, _engine):
            for _ in range(2):
                await ask(chats, await chats.new_chat(), "What / is: it?")
            one, folder = tmp_path / "one.md", tmp_path / "all"
            await chats.exchange.export_markdown(chats.chats[:1], one, labels=Labels())
            assert one.read_text("utf-8").startswith("# What / is: it?\n")
            assert "## You\n\nWhat / is: it?\n\n## Reply\n\n" in one.read_text("utf-8")
            await chats.exchange.export_markdown(chats.chats, folder, labels=Labels(you="Du"))
            names = sorted(path.name for path in folder.iterdir())
            assert names == ["What is it (2).md", "What is it.md"]
            blocked = tmp_path / "one.md" / "below.md"
            with pytest.raises(ExchangeError, match="cannot be written"):
                await chats.exchange.export_markdown(chats.chats[:1], blocked, labels=Labels())

    run(story)


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("", "chat"),
        ("../../etc/passwd", "etc passwd"),
        ("CON", "CON chat"),
        ("a\x00b\nc", "a b c"),
        ("...", "chat"),
        ("Größe: 3", "Größe 3"),
        ("Write about a dragon…", "Write about a dragon"),
    ],
)
def test_titles_become_names_that_every_system_takes(title: str, name: str) -> None:
    assert file_name(title) == name


def test_a_title_that_was_cut_for_the_list_is_whole_in_an_export(tmp_path: Path) -> None:
    prompt = (
        "Write a very long story about a dragon that guards a library and reads every book in it."
    )

    async def story() -> None:
        async with open_chats(tmp_path) as (chats, _):
            chat = await chats.new_chat()
            await ask(chats, chat, prompt)
            assert chat.title.endswith("…")
            assert to_markdown(chat, Labels()).startswith(f"# {prompt}\n")
            assert file_name(full_title(chat)) == prompt.rstrip(".")
            await chats.rename(chat, "Dragons…")
            assert to_markdown(chat, Labels()).startswith("# Dragons…\n")

    run(story)


def test_names_are_not_too_long_and_not_taken() -> None:
    assert len(file_name("漢" * 300).encode()) <= 120
    assert file_name("A", taken=["a", "a (2)"]) == "A (3)"


def test_a_cut_off_reply_says_so_in_markdown() -> None:
    from studio.models.chat import Message, MessageStatus, Role

    chat = Conversation(1, "A", 0.0, 0.0, is_loaded=True)
    chat.append(Message(1, 1, Role.ASSISTANT, "Day 1", 0.0, status=MessageStatus.STOPPED))
    labels = Labels(cut_off={MessageStatus.STOPPED: "cut off"})
    assert "*(cut off)*" in to_markdown(chat, labels)
    assert "(" not in to_markdown(chat, Labels())


def many(folder: Path, number: int) -> Path:
    """A file with so many chats, each with one message."""
    path = folder / "many.json"
    messages = [{"id": 1, "role": "user", "text": "Hello"}]
    entries = [
        {"title": f"Chat {one}", "created_s": 1e9 + one, "messages": messages}
        for one in range(number)
    ]
    path.write_text(json.dumps({"format": "layby chats", "chats": entries}))
    return path


def test_many_chats_come_in_a_few_steps_of_the_disk_and_are_told_as_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, told, run_, works = 3 * MOST_CHATS + 7, [], ImportRun(), []
    do = HistoryFile.do

    def counted(file: HistoryFile, work: Callable[..., Any]) -> Coroutine[Any, Any, Any]:
        works.append(work)
        return do(file, work)

    async def story() -> None:
        path = many(tmp_path, number)
        async with open_chats(tmp_path / "a") as (chats, _engine):
            run_.changed.connect(
                lambda: told.append((run_.num_done, run_.num_chats, len(chats.chats)))
            )
            monkeypatch.setattr(HistoryFile, "do", counted)
            assert await chats.exchange.import_file(path, run_) == ImportReport(num_new=number)
            assert len(works) <= 6  # one for each step, and the check of the file
            titles = [chat.title for chat in chats.chats]
            assert titles == [f"Chat {one}" for one in reversed(range(number))]
            assert len(await chats.search.find("hello")) == number
            chat = await chats.open_chat(chats.chats[-1].chat_id)
            assert [one.text for one in chat.messages] == ["Hello"]
            assert await chats.exchange.import_file(path) == ImportReport(num_known=number)

    run(story)
    steps = [0, MOST_CHATS, 2 * MOST_CHATS, 3 * MOST_CHATS, number]
    assert told == [(step, number, step) for step in steps]


def test_an_import_that_is_stopped_keeps_what_is_in_and_says_what_is_left(tmp_path: Path) -> None:
    run_ = ImportRun()

    async def story() -> None:
        path = many(tmp_path, 2 * MOST_CHATS)
        async with open_chats(tmp_path / "a") as (chats, _engine):
            run_.changed.connect(lambda: run_.num_done and run_.stop())
            report = await chats.exchange.import_file(path, run_)
            assert report == ImportReport(num_new=MOST_CHATS, num_left=MOST_CHATS)
            assert len(chats.chats) == MOST_CHATS
        async with open_chats(tmp_path / "a") as (chats, _engine):
            assert len(chats.chats) == MOST_CHATS
            report = await chats.exchange.import_file(path)
            assert report == ImportReport(num_new=MOST_CHATS, num_known=MOST_CHATS)

    run(story)
