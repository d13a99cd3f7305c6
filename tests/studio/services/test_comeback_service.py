"""Interrupted replies go on by themselves once the engine has their states on disk and a model is ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import (
    EngineSnapshot,
    EngineState,
    ModelChanged,
    ModelInfo,
    Resumed,
)
from engine.client import EngineClient
from engine.errors import ContextLengthExceeded, DeviceFailure, ResumeRefused, Suspended
from engine.runs import ForgetSaved, ParkCause, Suspend
from fakes.chat_rig import ChatRig, open_chats, read_rows, until
from fakes.fake_engine import TINY_MODEL, FakeEngine
from studio.models.chat import Message, MessageStatus, ids_of_request
from studio.services.comeback_service import ComebackService

REFUSED = ResumeRefused("this reply was parked on tiny, and other is loaded")


class SavingEngine(FakeEngine):
    """Says that it has states on disk."""

    def __init__(self, *saved_ids: str) -> None:
        super().__init__(auto=False)
        self.saved_ids = saved_ids

    def snapshot(self) -> EngineSnapshot:
        return replace(super().snapshot(), saved_ids=self.saved_ids)

    def get_ready(self, model: ModelInfo = TINY_MODEL) -> None:
        self.emit(ModelChanged(state=EngineState.READY, model=model, progress=1.0))

    def resume(self, request_id: str, text: str, num_tokens: int = 3) -> None:
        self.emit(Resumed(request_id=request_id, text=text, token_ids=(7,) * num_tokens))
        self.park(request_id, cause=ParkCause.ON_DISK)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@asynccontextmanager
async def rig_with(path: Path, engine: SavingEngine) -> AsyncIterator[ChatRig]:
    async with open_chats(path, engine) as rig:
        client = EngineClient(engine, asyncio.get_running_loop())
        service = ComebackService(client, rig.chats, rig.notices)
        yield rig
        await service.close()
        client.close()


async def interrupted(path: Path, text: str = "Once upon") -> str:
    """A history whose only chat was cut off in mid-reply; the request's id."""
    async with open_chats(path) as rig:
        _, _, request_id = await rig.ask("Tell me a story")
        rig.engine.start(request_id)
        rig.engine.say(request_id, text)
        await until(lambda: read_rows(path, "SELECT text FROM messages")[-1] == (text,))
    return request_id


def reply_of(rig: ChatRig) -> Message:
    return rig.chats.chats[0].messages[-1]


async def resume(rig: ChatRig, request_id: str) -> Message:
    engine = rig.engine
    assert isinstance(engine, SavingEngine)
    engine.get_ready()
    await until(lambda: request_id in engine.requests)
    assert engine.requests[request_id].resumes
    assert engine.requests[request_id].is_durable
    return reply_of(rig)


def test_an_interrupted_reply_goes_on_by_itself_when_a_model_is_ready(path: Path) -> None:
    async def run() -> None:
        request_id = await interrupted(path)
        engine = SavingEngine(request_id)
        async with rig_with(path, engine) as rig:
            reply = await resume(rig, request_id)
            assert reply.status is MessageStatus.QUEUED
            engine.resume(request_id, "Once upon a")
            await until(lambda: reply.status is MessageStatus.PARKED)
            assert reply.text == "Once upon a"
            engine.restore(request_id)
            engine.say(request_id, " time.")
            engine.finish(request_id)
            await until(lambda: reply.status is MessageStatus.DONE)
            assert reply.text == "Once upon a time."
            assert reply.stats.first_token_s is None or reply.stats.first_token_s < 60
            assert rig.notice_codes == []
        assert [type(command) for command in engine.commands] == []
        assert read_rows(path, "SELECT text, status FROM messages")[-1] == (
            "Once upon a time.",
            "done",
        )

    asyncio.run(run())


def test_the_state_is_right_where_the_history_was_saved_a_little_later(path: Path) -> None:
    async def run() -> None:
        request_id = await interrupted(path, "Once upon a time there")
        engine = SavingEngine(request_id)
        async with rig_with(path, engine) as rig:
            reply = await resume(rig, request_id)
            engine.resume(request_id, "Once upon")
            await until(lambda: reply.status is MessageStatus.PARKED)
            assert reply.text == "Once upon"

    asyncio.run(run())


def test_another_model_is_refused_and_the_text_kept(path: Path) -> None:
    async def run() -> None:
        request_id = await interrupted(path)
        engine = SavingEngine(request_id)
        async with rig_with(path, engine) as rig:
            reply = await resume(rig, request_id)
            engine.fail(request_id, REFUSED)
            await until(lambda: reply.status is MessageStatus.INTERRUPTED)
            assert reply.text == "Once upon"
            assert reply.note == str(REFUSED)
            assert rig.notice_codes == ["resume_refused"]
            engine.requests.clear()
            await resume(rig, request_id)  # the right model comes
            engine.resume(request_id, "Once upon")
            await until(lambda: reply.status is MessageStatus.PARKED)
            assert reply.note == ""
        assert not any(isinstance(command, ForgetSaved) for command in engine.commands)

    asyncio.run(run())


def test_a_reply_that_no_longer_fits_waits_for_a_larger_window(path: Path) -> None:
    async def run() -> None:
        request_id = await interrupted(path)
        engine = SavingEngine(request_id)
        async with rig_with(path, engine) as rig:
            reply = await resume(rig, request_id)
            error = ContextLengthExceeded("too long here", needed_tokens=9, limit_tokens=8)
            engine.fail(request_id, error)
            await until(lambda: reply.status is MessageStatus.INTERRUPTED)
            assert reply.note == "too long here"

    asyncio.run(run())


def test_a_failure_after_the_comeback_is_a_failure(path: Path) -> None:
    async def run() -> None:
        request_id = await interrupted(path)
        engine = SavingEngine(request_id)
        async with rig_with(path, engine) as rig:
            reply = await resume(rig, request_id)
            engine.resume(request_id, "Once upon")
            engine.fail(request_id, DeviceFailure("broken"))
            await until(lambda: reply.status is MessageStatus.FAILED)
            assert reply.text == "Once upon"

    asyncio.run(run())


def test_the_state_of_another_reply_is_not_taken(path: Path) -> None:
    async def run() -> None:
        request_id = await interrupted(path)
        engine = SavingEngine(request_id)
        async with rig_with(path, engine) as rig:
            reply = await resume(rig, request_id)
            engine.resume(request_id, "Somebody else's secret")
            await until(lambda: reply.status is not MessageStatus.QUEUED)
            assert (reply.status, reply.text) == (MessageStatus.INTERRUPTED, "Once upon")
            assert rig.notice_codes == ["resume_refused"]
            await until(lambda: engine.aborted == [request_id])

    asyncio.run(run())


def test_states_that_nobody_waits_for_are_forgotten(path: Path) -> None:
    async def run() -> None:
        request_id = await interrupted(path)
        chat_id, message_id = ids_of_request(request_id) or (0, 0)
        strange = ("cmpl-1", "chat-99-1", f"chat-{chat_id}-{message_id - 1}", "chat-٣-٤")
        engine = SavingEngine(*strange)
        async with rig_with(path, engine) as rig:
            engine.get_ready()
            await until(lambda: engine.commands)
            assert engine.commands == [ForgetSaved(request_ids=strange)]
            engine.saved_ids = (request_id,)
            engine.commands.clear()
            await rig.chats.open_chat(chat_id)
            assert await rig.chats.send(rig.chats.chats[0], "Never mind, another one")
            engine.get_ready()
            await until(lambda: engine.commands)
            assert engine.commands == [ForgetSaved(request_ids=(request_id,))]

    asyncio.run(run())


def test_a_model_that_is_loaded_again_lets_the_reply_go_on(path: Path) -> None:
    async def run() -> None:
        engine = SavingEngine()
        async with rig_with(path, engine) as rig:
            _, reply, request_id = await rig.ask("Tell me a story")
            engine.start(request_id)
            engine.say(request_id, "Once")
            engine.fail(request_id, Suspended("kept on disk"))
            await until(lambda: reply.status is MessageStatus.INTERRUPTED)
            assert (reply.text, reply.note) == ("Once", "kept on disk")
            assert rig.notice_codes == []
            engine.saved_ids = (request_id,)
            engine.requests.clear()
            await resume(rig, request_id)
            engine.resume(request_id, "Once")
            engine.restore(request_id)
            engine.say(request_id, " more.")
            engine.finish(request_id)
            await until(lambda: reply.status is MessageStatus.DONE)
            assert reply.text == "Once more."

    asyncio.run(run())


def test_closing_asks_the_engine_to_keep_what_runs_before_it_leaves(path: Path) -> None:
    heard: list[object] = []

    class Watching(FakeEngine):
        def abort(self, request_id: str) -> None:
            heard.append(("abort", request_id))
            super().abort(request_id)

        def control(self, command: object) -> None:
            heard.append(command)

    async def run() -> str:
        async with open_chats(path, Watching(auto=False)) as rig:
            _, _, request_id = await rig.ask("Tell me a story")
            rig.engine.start(request_id)
            return request_id

    request_id = asyncio.run(run())
    assert heard == [Suspend(request_id=request_id), ("abort", request_id)]


def test_stopping_by_hand_keeps_nothing(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, _, request_id = await rig.ask("Tell me a story")
            rig.engine.start(request_id)
            rig.chats.stop(chat)
            await until(lambda: rig.engine.aborted == [request_id])
            assert rig.engine.commands == []

    asyncio.run(run())


def test_what_is_on_disk_of_a_deleted_chat_goes_with_it(path: Path) -> None:
    async def run() -> None:
        request_id = await interrupted(path)
        engine = SavingEngine("chat-77-1", request_id)
        async with rig_with(path, engine) as rig:
            await rig.chats.delete(rig.chats.chats[0])
            assert engine.commands == [ForgetSaved(request_ids=(request_id,))]

    asyncio.run(run())
