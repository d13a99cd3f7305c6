"""ChatService against a scripted engine and a real database: what the user sees, and what is on the disk when."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import FinishReason, PromptProgress, Request
from engine.errors import ContextLengthExceeded, DeviceFailure, ModelUnavailable
from engine.runs import ParkCause
from fakes.chat_rig import open_chats, read_rows, until
from fakes.fake_engine import FakeEngine
from studio.models.chat import NEW_CHAT_TITLE, MessageStatus
from studio.views.status_words import describe_chat


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def test_a_prompt_is_answered_and_both_are_on_disk(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine(reply="Day one, the sea.")) as rig:
            chat, reply, _ = await rig.ask("Plan a trip")
            await until(lambda: reply.status is MessageStatus.DONE)
            assert reply.text == "Day one, the sea."
            assert (reply.stats.prompt_tokens, reply.stats.completion_tokens) == (5, 4)
            assert reply.stats.tokens_per_s == pytest.approx(3 / 0.1)
            assert reply.stats.first_token_s is not None
            assert chat.running_message is None
        assert read_rows(path, "SELECT role, text, status FROM messages ORDER BY message_id") == [
            ("user", "Plan a trip", "done"),
            ("assistant", "Day one, the sea.", "done"),
        ]

    asyncio.run(run())


def test_the_prompt_is_committed_before_the_engine_hears_of_it(path: Path) -> None:
    class WatchingEngine(FakeEngine):
        def submit(self, request: Request) -> None:
            seen.extend(read_rows(path, "SELECT role, text, status FROM messages"))
            super().submit(request)

    seen: list[tuple[str, ...]] = []

    async def run() -> None:
        async with open_chats(path, WatchingEngine()) as rig:
            await rig.ask("Remember me")

    asyncio.run(run())
    assert seen == [("user", "Remember me", "done"), ("assistant", "", "queued")]


def test_chats_stream_side_by_side_and_none_gets_the_others_text(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            asked = [await rig.ask(f"question {number}") for number in range(3)]
            for _, _, request_id in asked:
                rig.engine.start(request_id)
            for step in range(20):
                for number, (_, _, request_id) in enumerate(asked):
                    rig.engine.say(request_id, f"{number}:{step} ")
            for _, _, request_id in asked:
                rig.engine.finish(request_id)
            await until(lambda: all(reply.status is MessageStatus.DONE for _, reply, _ in asked))
            for number, (_, reply, _) in enumerate(asked):
                assert reply.text == "".join(f"{number}:{step} " for step in range(20))

    asyncio.run(run())


def test_a_chat_that_is_answering_takes_no_second_prompt(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, _, _ = await rig.ask("first")
            assert not await rig.chats.send(chat, "second")
            assert not await rig.chats.send(await rig.chats.new_chat(), "   \n")
            assert len(rig.engine.requests) == 1
            assert [message.text for message in chat.messages] == ["first", ""]

    asyncio.run(run())


def test_two_sends_at_the_same_moment_ask_once(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat = await rig.chats.new_chat()
            answers = await asyncio.gather(rig.chats.send(chat, "one"), rig.chats.send(chat, "two"))
            assert answers == [True, False]
            assert [message.text for message in chat.messages] == ["one", ""]

    asyncio.run(run())


def test_stop_keeps_the_text_aborts_the_request_and_allows_the_next_prompt(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, reply, request_id = await rig.ask("tell me")
            rig.engine.start(request_id)
            rig.engine.say(request_id, "Once upon")
            await until(lambda: reply.text)
            rig.chats.stop(chat)
            assert (reply.status, reply.text) == (MessageStatus.STOPPED, "Once upon")
            rig.engine.say(request_id, " a time")
            await until(lambda: request_id in rig.engine.aborted)
            assert reply.text == "Once upon"
            _, _, second = await rig.ask("go on", chat)
            contents = [
                (turn.role, turn.content) for turn in rig.engine.requests[second].prompt.messages
            ]
            assert contents == [("user", "tell me"), ("assistant", "Once upon"), ("user", "go on")]

    asyncio.run(run())


def test_one_that_is_stopped_or_fails_while_it_is_parked_was_parked_until_then(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            for fails in (False, True):
                chat, reply, request_id = await rig.ask("tell me")
                rig.engine.start(request_id)
                rig.engine.park(request_id)
                await until(lambda reply=reply: reply.park is not None)
                assert reply.park is not None
                reply.park = replace(reply.park, since_s=reply.park.since_s - 7.0)
                if fails:
                    rig.engine.fail(request_id, ModelUnavailable("gone"))
                    await until(lambda chat=chat: chat.running_message is None)
                else:
                    rig.chats.stop(chat)
                assert reply.park is None
                assert reply.stats.parked_s >= 7.0

    asyncio.run(run())


def test_stop_right_after_send_never_reaches_the_engine_or_aborts_there(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat = await rig.chats.new_chat()
            assert await rig.chats.send(chat, "never mind")
            rig.chats.stop(chat)
            assert chat.messages[-1].status is MessageStatus.STOPPED
            await until(lambda: set(rig.engine.requests) == set(rig.engine.aborted))

    asyncio.run(run())


def test_reading_parking_and_coming_back_are_states_of_the_reply(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            _, reply, request_id = await rig.ask("long prompt")
            assert reply.status is MessageStatus.QUEUED
            rig.engine.emit(
                PromptProgress(request_id=request_id, computed_tokens=300, prompt_tokens=1200)
            )
            await until(lambda: reply.status is MessageStatus.READING)
            assert reply.progress == 0.25
            rig.engine.say(request_id, "So")
            rig.engine.park(request_id)
            await until(lambda: reply.status is MessageStatus.PARKED)
            assert reply.park is not None
            assert reply.park.reason.cause is ParkCause.PAGES_SHORT
            rig.engine.restore(request_id, parked_s=4.5, recomputed_tokens=1900)
            await until(lambda: reply.status is MessageStatus.READING)
            assert reply.park is None
            assert (reply.reread_tokens, reply.stats.parked_s) == (1900, 4.5)
            rig.engine.say(request_id, " it goes")
            await until(lambda: reply.status is MessageStatus.WRITING)
            assert (reply.text, reply.reread_tokens) == ("So it goes", 0)
            rig.engine.finish(request_id, FinishReason.LENGTH)
            await until(lambda: reply.status is MessageStatus.LENGTH)

    asyncio.run(run())


def test_a_failed_reply_says_why_and_is_left_out_of_the_next_prompt(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, reply, request_id = await rig.ask("too much")
            error = ContextLengthExceeded(
                "9,120 tokens do not fit 8,192", needed_tokens=9120, limit_tokens=8192
            )
            rig.engine.start(request_id)
            rig.engine.say(request_id, "half a")
            rig.engine.fail(request_id, error)
            await until(lambda: reply.status is MessageStatus.FAILED)
            assert reply.note == "9,120 tokens do not fit 8,192"
            assert rig.notice_codes == ["context_length_exceeded"]
            _, _, second = await rig.ask("shorter", chat)
            (turn,) = rig.engine.requests[second].prompt.messages
            assert turn.content == "too much\n\nshorter"

    asyncio.run(run())


def test_the_first_prompt_names_the_chat_unless_the_user_did(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine()) as rig:
            chat, reply, _ = await rig.ask(
                "Plan three days in Lisbon\nwith two children and a dog, please"
            )
            assert chat.title == "Plan three days in Lisbon with two…"
            await until(lambda: not reply.status.is_alive)
            await rig.ask("And the food?", chat)
            assert chat.title == "Plan three days in Lisbon with two…"
            named = await rig.chats.new_chat()
            await rig.chats.rename(named, "Mine")
            await rig.ask("hello", named)
            assert named.title == "Mine"
        titles = read_rows(path, "SELECT title FROM chats ORDER BY chat_id")
        assert titles == [("Plan three days in Lisbon with two…",), ("Mine",)]

    asyncio.run(run())


def test_the_chat_last_used_is_first_now_and_after_a_restart(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine()) as rig:
            first, reply, _ = await rig.ask("one")
            second, _, _ = await rig.ask("two")
            await until(lambda: not reply.status.is_alive)
            await rig.ask("again", first)
            assert rig.chats.chats == [first, second]
        async with open_chats(path) as rig:
            assert [chat.title for chat in rig.chats.chats] == ["one", "two"]

    asyncio.run(run())


def test_a_growing_reply_is_on_disk_while_it_grows(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            _, _, request_id = await rig.ask("stream")
            rig.engine.start(request_id)
            rig.engine.say(request_id, "some ")
            await until(
                lambda: (
                    rig.rows("SELECT text FROM messages WHERE role = 'assistant'") == [("some ",)]
                )
            )
            rig.engine.say(request_id, "more")
            await until(
                lambda: (
                    rig.rows("SELECT text FROM messages WHERE role = 'assistant'")
                    == [("some more",)]
                )
            )

    asyncio.run(run())


def test_closing_keeps_running_replies_as_interrupted(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            _, reply, request_id = await rig.ask("write a book")
            rig.engine.start(request_id)
            rig.engine.say(request_id, "Chapter one")
            await until(lambda: reply.text)
        assert request_id in rig.engine.aborted
        async with open_chats(path) as rig:
            (chat,) = rig.chats.chats
            assert chat.messages == []
            await rig.chats.open_chat(chat.chat_id)
            prompt, again = chat.messages
            assert (prompt.text, again.text, again.status) == (
                "write a book",
                "Chapter one",
                MessageStatus.INTERRUPTED,
            )

    asyncio.run(run())


def test_a_reply_that_ends_off_screen_marks_its_chat_unread_until_opened(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            seen, seen_reply, seen_id = await rig.ask("looked at")
            other, other_reply, other_id = await rig.ask("not looked at")
            rig.chats.set_visible(seen, is_visible=True)
            rig.engine.finish(seen_id)
            rig.engine.finish(other_id)
            await until(lambda: not (seen_reply.status.is_alive or other_reply.status.is_alive))
            assert (seen.has_unread, other.has_unread) == (False, True)
            await rig.chats.open_chat(other.chat_id)
            assert not other.has_unread

    asyncio.run(run())


def test_drafts_survive_and_untouched_chats_do_not(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat = await rig.chats.new_chat()
            await rig.chats.new_chat()
            rig.chats.set_draft(chat, "half a thou")
        async with open_chats(path) as rig:
            (chat,) = rig.chats.chats
            assert (chat.title, chat.draft) == (NEW_CHAT_TITLE, "half a thou")
            await rig.ask("half a thought", chat)
            assert chat.draft == ""

    asyncio.run(run())


def test_names_that_would_turn_the_line_around_are_told_straight(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, _, _ = await rig.ask("evil \u202egpj.exe")
            assert chat.title == "evil gpj.exe"
            assert chat.messages[0].text == "evil \u202egpj.exe", "what was said stays as it is"
            await rig.chats.rename(chat, "\u202e\x1b")
            assert chat.title == "evil gpj.exe"
            await rig.chats.rename(chat, "one\u2066 \ttwo\x00")
            assert chat.title == "one two"
            folder = await rig.chats.folders.new("\u202eF")
            assert folder.name == "F"
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("UPDATE chats SET title = 'old \u202eone'")
        async with open_chats(path) as rig:
            assert [one.title for one in rig.chats.chats] == ["old one"]

    asyncio.run(run())


def test_a_chat_of_a_time_to_come_is_the_last_until_it_is_used(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            wrong, _, _ = await rig.ask("when the clock was wrong")
            right, _, _ = await rig.ask("when it was right")
            wrong.updated_s += 1e9
            rig.chats.set_draft(wrong, "x")
        async with open_chats(path) as rig:
            right, wrong = rig.chats.chats
            assert wrong.title == "when the clock was wrong"
            await rig.chats.shelf.delete([wrong, right])
            await rig.chats.shelf.restore([wrong, right])
            assert rig.chats.chats == [right, wrong]
            assert await rig.chats.send(wrong, "now")
            assert rig.chats.chats == [wrong, right]
        async with open_chats(path) as rig:
            assert [one.title for one in rig.chats.chats] == [wrong.title, right.title]

    asyncio.run(run())


def test_why_a_reply_ended_is_told_by_the_list_after_a_restart_too(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, reply, request_id = await rig.ask("first")
            rig.engine.start(request_id)
            rig.engine.fail(request_id, DeviceFailure("the device is gone"))
            await until(lambda: not reply.status.is_alive)
            before = describe_chat(chat, 0.0)
            assert "the device is gone" in before.text
        async with open_chats(path) as rig:
            (chat,) = rig.chats.chats
            assert not chat.is_loaded
            assert describe_chat(chat, 0.0) == before
            await rig.chats.open_chat(chat.chat_id)
            assert describe_chat(chat, 0.0) == before

    asyncio.run(run())
