"""SearchService: names in memory, texts by the index, which follows every change of a message."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fakes.chat_rig import ChatRig, open_chats, read_rows, until
from fakes.fake_engine import FakeEngine


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


async def fill(rig: ChatRig, *prompts: str) -> None:
    for prompt in prompts:
        chat, _, _ = await rig.ask(prompt)
        await until(lambda: chat.running_message is None)  # noqa: B023 - awaited here
    unsaved = "SELECT count(*) FROM messages WHERE status != 'done'"
    await until(lambda: rig.rows(unsaved) == [(0,)])


async def found(rig: ChatRig, query: str) -> list[tuple[str, str]]:
    """Titles and snippets, what was looked for in brackets."""
    shown = []
    for one in await rig.chats.search.find(query):
        text = one.snippet.text if one.snippet is not None else ""
        for start, end in reversed(one.snippet.marks if one.snippet is not None else ()):
            text = f"{text[:start]}[{text[start:end]}]{text[end:]}"
        shown.append((one.chat.title, text))
    return shown


def test_names_are_found_in_the_middle_of_words_and_texts_by_the_beginning_of_words(
    path: Path,
) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine(reply="Take the yellow tram.")) as rig:
            await fill(rig, "Plan three days in Lisbon", "Bicycle repair")
            assert await found(rig, "cycl") == [("Bicycle repair", "")]
            both = await found(rig, "tra yell")
            assert [text for _, text in both] == ["Take the [yellow] [tram]."] * 2
            assert await found(rig, "ram") == []
            assert await found(rig, "lisbon") == [
                ("Plan three days in Lisbon", "Plan three days in [Lisbon]")
            ]
            assert await found(rig, "  ") == []
            assert await rig.store.search.find("t") == []
            assert len(await rig.store.search.find("the t")) == 0  # no word is t
            assert await found(rig, "yellow Lisbon") == []

    asyncio.run(run())


def test_case_and_accents_do_not_matter_and_marks_mean_nothing(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine(reply="ok")) as rig:
            await fill(rig, "Größe der Übung: naïve café")
            for query in ("übung", "UBUNG", "naive", "café", '"naive" AND (', "cafe* OR NOT"):
                hits = await found(rig, query)
                assert len(hits) == (0 if "NOT" in query or "AND" in query else 1), query

    asyncio.run(run())


def test_scripts_without_spaces_are_searched_letter_by_letter(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine(reply="はい、東京は日本の首都です。")) as rig:
            await fill(rig, "問い")
            assert await found(rig, "日本の") == [("問い", "はい、東京は[日本の]首都です。")]
            assert await found(rig, "大阪") == []

    asyncio.run(run())


def test_the_index_follows_every_change_of_a_message(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, reply, request_id = await rig.ask("question")
            rig.engine.start(request_id)
            rig.engine.say(request_id, "alpha beta")
            await until(lambda: rig.rows("SELECT text FROM messages")[-1] == ("alpha beta",))
            assert await found(rig, "alpha") == []  # still being written
            rig.engine.finish(request_id)
            await until(lambda: rig.rows("SELECT status FROM messages")[-1] == ("done",))
            assert len(await found(rig, "alpha")) == 1
            await rig.chats.versions.edit_reply(chat, reply, "gamma")
            assert len(await found(rig, "gamma")) == len(await found(rig, "alpha")) == 1
            rig.chats.versions.choose(chat, reply)
            await rig.chats.versions.delete_message(chat, reply)
            assert await found(rig, "alpha") == []
            await rig.chats.shelf.delete_for_good([chat])
            assert await found(rig, "gamma") == []
        check = "SELECT count(*) FROM message_words_docsize"
        assert read_rows(path, check) == [(0,)]

    asyncio.run(run())


def test_each_chat_is_found_once_with_its_newest_message(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine(reply="ok")) as rig:
            chat, _, _ = await rig.ask("soup one")
            await until(lambda: chat.running_message is None)
            await rig.ask("soup two", chat)
            await until(lambda: chat.running_message is None)
            (hit,) = await rig.chats.search.find("soup")
            assert hit.snippet is not None
            assert (hit.snippet.text, hit.message_id) == (
                "soup two",
                chat.messages[2].message_id,
            )
            assert [one.title for one in rig.chats.search.in_names("SOUP")] == ["soup one"]

    asyncio.run(run())


def test_a_chat_full_of_hits_hides_no_other(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine(reply="soup soup")) as rig:
            await fill(rig, "an old soup")
            await fill(rig, "nothing")
            chat = rig.chats.chats[0]
            for _ in range(8):
                await rig.ask("more soup", chat)
                await until(lambda: chat.running_message is None)
            newest = chat.messages[-1].message_id
            async with asyncio.timeout(60):  # its last words are saved a moment after it has ended
                while (hits := await rig.store.search.find("soup", most=2))[0].message_id != newest:
                    pass
            assert [hit.chat_id for hit in hits] == [2, 1]

    asyncio.run(run())


def test_a_snippet_of_a_long_text_is_one_short_line_around_the_hit(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine(reply="ok")) as rig:
            await fill(
                rig, "\n".join(["filler words here"] * 300 + ["the needle"] + ["more"] * 300)
            )
            ((_, text),) = await found(rig, "needle")
            assert "[needle]" in text
            assert len(text) < 200
            assert "\n" not in text

    asyncio.run(run())
