"""Tools in chats: asked for, allowed or denied by the user, run, told to the model; stored, and waited for anew."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from engine.api import Chat, ChatMessage, FinishReason, Request, Stay, ToolCall, ToolChoice
from engine.errors import ContextLengthExceeded
from fakes.chat_rig import ChatRig, open_chats, until
from fakes.fake_tools import NOTES, FakeTools
from fakes.on_a_loop import on_a_loop
from studio.models.chat import Conversation, Message, MessageStatus
from studio.models.errors import ToolServerError
from studio.models.tool_servers import LinkState
from studio.models.tool_settings import ToolSettings
from studio.models.tool_use import ChatTools, ToolUse, ToolUseState
from studio.services.exchange.layby_file import decode, encode, entry_of
from studio.services.exchange.markdown_file import Labels, to_markdown
from studio.services.tools.answers import ToolAnswer
from studio.services.tools.tool_desk import ToolDesk, Verdict

LISBON = '{"city": "Lisbon"}'


@dataclass(slots=True)
class Rig:
    chats: ChatRig
    tools: FakeTools
    asked: list[Message]

    @property
    def desk(self) -> ToolDesk:
        assert self.chats.chats.desk is not None
        return self.chats.chats.desk

    @property
    def last_request(self) -> Request:
        return list(self.chats.engine.requests.values())[-1]

    async def new_chat(self, *always: tuple[str, str]) -> Conversation:
        chat = await self.chats.chats.new_chat()
        chat.tools = ChatTools(servers=("home",), always=always)
        return chat

    async def calls(
        self, chat: Conversation, *calls: tuple[str, str], text: str = "Let me look."
    ) -> Message:
        """A reply that calls these tools."""
        _, reply, request_id = await self.chats.ask("How is it?", chat)
        self.say_calls(request_id, *calls, text=text)
        await until(lambda: reply.status in (MessageStatus.TOOLS, MessageStatus.DONE))
        return reply

    def say_calls(self, request_id: str, *calls: tuple[str, str], text: str = "") -> None:
        engine = self.chats.engine
        engine.start(request_id)
        if text:
            engine.say(request_id, text)
        for index, (name, arguments) in enumerate(calls):
            engine.call(request_id, name, arguments, call_id=f"c{index}", index=index)
        engine.finish(request_id, FinishReason.TOOL_CALLS)

    async def following(self, chat: Conversation, known: int = 1) -> Message:
        """The reply after the calls, once it has been asked for."""
        await until(lambda: len(self.chats.engine.requests) > known)
        return chat.messages[-1]

    def end(self, reply: str = "It rains.") -> None:
        request_id = self.last_request.request_id
        self.chats.engine.start(request_id)
        self.chats.engine.say(request_id, reply)
        self.chats.engine.finish(request_id)


@asynccontextmanager
async def open_rig(path: Path, settings: ToolSettings | None = None) -> AsyncIterator[Rig]:
    servers = path / "servers.json"
    servers.unlink(missing_ok=True)
    tools = FakeTools(servers)
    async with open_chats(path / "history.db", tools=tools.tooling(settings)) as chats:
        rig = Rig(chats, tools, [])
        rig.desk.asked.connect(lambda _chat, reply: rig.asked.append(reply))
        yield rig


def copy_history(source: Path, target: Path) -> None:
    for file in source.glob("history.db*"):
        shutil.copy(file, target)


def turns(request: Request) -> tuple[ChatMessage, ...]:
    assert isinstance(request.prompt, Chat)
    return request.prompt.messages


def states(reply: Message) -> list[ToolUseState]:
    return [use.state for use in reply.calls]


@on_a_loop
async def test_a_chat_without_servers_is_offered_no_tools(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        await rig.chats.ask("Hello")
        request = rig.last_request
        assert isinstance(request.prompt, Chat)
        assert (request.prompt.tools, request.tells_parts, request.stays) == ((), False, None)


@on_a_loop
async def test_a_call_is_asked_run_and_told_to_the_model(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        chat = await rig.new_chat()
        reply = await rig.calls(chat, ("weather", LISBON))
        first = rig.last_request
        assert isinstance(first.prompt, Chat)
        assert [tool.name for tool in first.prompt.tools] == ["weather", "notes"]
        assert (first.tells_parts, first.stays) == (True, Stay(grace_s=10))
        assert (rig.asked, reply.is_asking, rig.tools.called) == ([reply], True, [])
        assert chat.running_message is reply

        rig.desk.answer(chat, reply, "c0", Verdict.ONCE)
        following = await rig.following(chat)
        assert rig.tools.called == [("home", "weather", LISBON)]
        assert (reply.status, states(reply)) == (MessageStatus.DONE, [ToolUseState.DONE])
        assert rig.last_request.follows == first.request_id
        assert turns(rig.last_request)[1:] == (
            ChatMessage(
                role="assistant",
                content="Let me look.",
                tool_calls=(ToolCall(call_id="c0", name="weather", arguments=LISBON),),
            ),
            ChatMessage(role="tool", content="7 degrees, rain", tool_call_id="c0", name="weather"),
        )
        rig.end()
        await until(lambda: following.status is MessageStatus.DONE)
        assert [message.text for message in chat.messages] == [
            "How is it?",
            "Let me look.",
            "It rains.",
        ]
        assert chat.running_message is None
        assert not chat.tools.always


@on_a_loop
async def test_always_is_for_this_tool_in_this_chat(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        chat = await rig.new_chat()
        reply = await rig.calls(chat, ("weather", LISBON), ("weather", "{}"), ("notes", "{}"))
        rig.desk.answer(chat, reply, "c0", Verdict.ALWAYS)
        await until(lambda: len(rig.tools.called) == 2)
        assert states(reply)[2] is ToolUseState.ASKED
        rig.desk.answer(chat, reply, "c2", Verdict.DENY)
        await rig.following(chat)
        rig.say_calls(rig.last_request.request_id, ("weather", "{}"))
        await rig.following(chat, known=2)
        assert len(rig.tools.called) == 3
        assert rig.asked == [reply]
        assert chat.tools.always == (("home", "weather"),)
    async with open_rig(tmp_path) as rig:
        (chat,) = rig.chats.chats.chats
        assert chat.tools == ChatTools(servers=("home",), always=(("home", "weather"),))


@on_a_loop
async def test_a_denied_call_is_told_with_the_users_word(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        chat = await rig.new_chat()
        reply = await rig.calls(chat, ("weather", LISBON), ("notes", "{}"))
        rig.desk.answer(chat, reply, "c0", Verdict.DENY, word=" ask about Porto ")
        rig.desk.answer(chat, reply, "c0", Verdict.ONCE)
        rig.desk.answer(chat, reply, "c1", Verdict.DENY)
        await rig.following(chat)
        told = [turn.content for turn in turns(rig.last_request) if turn.role == "tool"]
        assert told == [
            "The user did not allow this call. They say: ask about Porto",
            "The user did not allow this call.",
        ]
        assert not rig.tools.called


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (ToolServerError("home did not answer"), "Error: home did not answer"),
        (ToolAnswer(text="no such city", is_error=True), "Error: no such city"),
        (ToolAnswer(text=""), "(no output)"),
    ],
)
@on_a_loop
async def test_what_goes_wrong_is_told_to_the_model(
    tmp_path: Path, answer: ToolAnswer | ToolServerError, told: str
) -> None:
    async with open_rig(tmp_path) as rig:
        rig.tools.answers["weather"] = answer
        chat = await rig.new_chat(("home", "weather"))
        await rig.calls(chat, ("weather", LISBON))
        await rig.following(chat)
        assert turns(rig.last_request)[-1].content == told


@on_a_loop
async def test_a_result_that_would_fill_the_window_is_cut_and_the_model_told(
    tmp_path: Path,
) -> None:
    async with open_rig(tmp_path) as rig:
        rig.tools.answers["weather"] = ToolAnswer(text="rain " * 1000)
        chat = await rig.new_chat(("home", "weather"))
        await rig.calls(chat, ("weather", LISBON))
        await rig.following(chat)
        told = turns(rig.last_request)[-1].content
        assert told.endswith("[cut off here: 2,952 characters more]")


@on_a_loop
async def test_a_tool_that_is_none_is_not_asked_about(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        chat = await rig.new_chat()
        await rig.calls(chat, ("wether", "{}"))
        await rig.following(chat)
        assert turns(rig.last_request)[-1].content == "Error: there is no tool called 'wether'"
        assert not rig.asked


@on_a_loop
async def test_after_so_many_rounds_the_model_has_to_answer(tmp_path: Path) -> None:
    async with open_rig(tmp_path, ToolSettings(most_rounds=2)) as rig:
        chat = await rig.new_chat(("home", "weather"))
        await rig.calls(chat, ("weather", "{}"))
        await rig.following(chat)
        assert isinstance(rig.last_request.prompt, Chat)
        assert rig.last_request.prompt.tool_choice is ToolChoice.AUTO
        rig.say_calls(rig.last_request.request_id, ("weather", "{}"))
        await rig.following(chat, known=2)
        assert rig.last_request.prompt.tool_choice is ToolChoice.NONE
        assert rig.last_request.stays is None


@on_a_loop
async def test_a_server_that_does_not_start_is_told_and_the_chat_goes_on(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        rig.tools.problem = "home: the program was not found"
        chat = await rig.new_chat()
        await rig.chats.ask("Hello", chat)
        assert rig.chats.notice_codes == ["tool_server_failed"]
        rig.end("Hello.")
        await until(lambda: chat.running_message is None)
        rig.tools.problem = ""
        await rig.chats.ask("And now?", chat)
        assert rig.chats.notice_codes == [], "it runs now"


@on_a_loop
async def test_the_notice_of_a_server_goes_when_it_is_switched_off(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        rig.tools.problem = "home: the program was not found"
        chat = await rig.new_chat()
        await rig.chats.ask("Hello", chat)
        assert rig.chats.notice_codes == ["tool_server_failed"]
        rig.tools.store.switch("home", is_on=False)
        assert rig.chats.notice_codes == []
        assert rig.tools.status("home").state is LinkState.OFF


@on_a_loop
async def test_a_reply_that_fails_for_its_tools_says_what_they_take(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        rig.tools.tools = (replace(NOTES, description="w " * 3000),)
        chat = await rig.new_chat()
        _, reply, request_id = await rig.chats.ask("Hello there", chat)
        needed = rig.chats.engine.count_tokens(rig.last_request.prompt)
        error = ContextLengthExceeded("too long", needed_tokens=needed, limit_tokens=2048)
        rig.chats.engine.fail(request_id, error)
        await until(lambda: rig.chats.notice_codes == ["tools_too_long"])
        (notice,) = rig.chats.notices.notices.notices
        assert f"they take {needed - 2:,} of {needed:,} tokens" in notice.detail
        assert notice.chat_id == chat.chat_id
        assert reply.status is MessageStatus.FAILED

        rig.tools.tools = (NOTES,)
        _, _, request_id = await rig.chats.ask("w " * 3000, chat)
        rig.chats.engine.fail(request_id, error)
        await until(lambda: "context_length_exceeded" in rig.chats.notice_codes)


@on_a_loop
async def test_stopping_gives_up_what_is_open_and_lets_the_engine_go(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        rig.tools.gate.clear()
        chat = await rig.new_chat(("home", "weather"))
        reply = await rig.calls(chat, ("weather", LISBON), ("notes", "{}"))
        await until(lambda: rig.tools.called)
        rig.chats.chats.stop(chat)
        assert (reply.status, states(reply)) == (
            MessageStatus.STOPPED,
            [ToolUseState.DENIED, ToolUseState.DENIED],
        )
        await until(lambda: rig.tools.cancelled == ["weather"])
        assert rig.last_request.request_id in rig.chats.engine.aborted
        assert len(rig.chats.engine.requests) == 1
        assert rig.chats.chats.turns.continue_reply(chat)
        await rig.following(chat)
        assert turns(rig.last_request)[-1].content == "The user did not allow this call."


@on_a_loop
async def test_a_chat_that_waits_for_its_user_waits_again_after_a_restart(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        chat = await rig.new_chat()
        await rig.calls(chat, ("weather", LISBON))
    async with open_rig(tmp_path) as rig:
        (chat,) = rig.chats.chats.chats
        assert chat.last_status is MessageStatus.TOOLS
        await rig.chats.chats.open_chat(chat.chat_id)
        reply = chat.messages[-1]
        assert reply.is_asking
        rig.desk.answer(chat, reply, "c0", Verdict.ONCE)
        await rig.following(chat, known=0)
        assert rig.tools.called == [("home", "weather", LISBON)]
        assert turns(rig.last_request)[-1].content == "7 degrees, rain"
        rig.end()
        await until(lambda: chat.running_message is None)


@on_a_loop
async def test_what_lies_on_disk_while_it_asks_is_enough_to_ask_again(tmp_path: Path) -> None:
    """As a killed program leaves it: its files are copied while they are open."""
    killed = tmp_path / "killed"
    killed.mkdir()
    async with open_rig(tmp_path) as rig:
        await rig.calls(await rig.new_chat(), ("weather", LISBON))
        is_stored = "SELECT 1 FROM messages WHERE status = 'tools' AND calls LIKE '%asked%'"
        await until(lambda: rig.chats.rows(is_stored))
        copy_history(tmp_path, killed)
    async with open_rig(killed) as rig:
        (chat,) = rig.chats.chats.chats
        await rig.chats.chats.open_chat(chat.chat_id)
        assert chat.messages[-1].is_asking
        assert chat.tools.servers == ("home",)


@on_a_loop
async def test_a_call_that_ran_when_the_program_ended_is_asked_about_again(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        rig.tools.gate.clear()
        chat = await rig.new_chat(("home", "weather"))
        await rig.calls(chat, ("weather", LISBON))
        await until(lambda: rig.tools.called)
        await until(lambda: '"running"' in rig.chats.rows("SELECT calls FROM messages")[-1][0])
    async with open_rig(tmp_path) as rig:
        (chat,) = rig.chats.chats.chats
        await rig.chats.chats.open_chat(chat.chat_id)
        (use,) = chat.messages[-1].calls
        assert (use.state, use.was_interrupted) == (ToolUseState.ASKED, True)


@on_a_loop
async def test_stopping_a_chat_that_waits_since_before_works_too(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        await rig.calls(await rig.new_chat(), ("weather", LISBON))
    async with open_rig(tmp_path) as rig:
        (chat,) = rig.chats.chats.chats
        await rig.chats.chats.open_chat(chat.chat_id)
        rig.chats.chats.stop(chat)
        assert chat.messages[-1].status is MessageStatus.STOPPED
        assert chat.running_message is None


@on_a_loop
async def test_reasoning_that_comes_apart_is_kept_and_told_apart_again(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        chat = await rig.new_chat(("home", "weather"))
        _, reply, request_id = await rig.chats.ask("How is it?", chat)
        engine = rig.chats.engine
        engine.start(request_id)
        engine.write(request_id, reasoning="I had better ")
        engine.write(request_id, reasoning="look.")
        engine.call(request_id, "weather", LISBON)
        engine.finish(request_id, FinishReason.TOOL_CALLS)
        await rig.following(chat)
        assert reply.text == "<think>\nI had better look.\n</think>\n\n"
        turn = turns(rig.last_request)[1]
        assert (turn.reasoning, turn.content) == ("I had better look.", "")


@on_a_loop
async def test_calls_go_out_and_in_with_their_chat(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        chat = await rig.new_chat()
        reply = await rig.calls(chat, ("weather", LISBON), ("notes", "{}"))
        rig.desk.answer(chat, reply, "c0", Verdict.ONCE)
        await until(lambda: states(reply)[0] is ToolUseState.DONE)
        written = encode([entry_of(chat, [])], now_s=1.0)
        copy = await rig.chats.chats.versions.duplicate(chat)
        page = to_markdown(chat, Labels())
    assert '**Tool: weather** `{"city": "Lisbon"}`\n\n> 7 degrees, rain' in page
    assert copy is not None
    (read,) = decode(json.loads(written)).chats
    for calls in (read.messages[-1].calls, copy.messages[-1].calls):
        assert calls == (
            ToolUse(
                call_id="c0",
                name="weather",
                arguments=LISBON,
                server="home",
                tool="weather",
                state=ToolUseState.DONE,
                result="7 degrees, rain",
            ),
            ToolUse(
                call_id="c1",
                name="notes",
                arguments="{}",
                server="home",
                tool="notes",
                state=ToolUseState.DENIED,
            ),
        )
    assert read.chat.tools == copy.tools == ChatTools(servers=("home",))
    assert not read.messages[-1].status.is_alive


@on_a_loop
async def test_several_chats_ask_at_once_and_none_waits_for_the_other(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        first, second = await rig.new_chat(), await rig.new_chat()
        one = await rig.calls(first, ("weather", LISBON))
        other = await rig.calls(second, ("notes", "{}"))
        rig.desk.answer(second, other, "c0", Verdict.ONCE)
        await rig.following(second, known=2)
        assert one.is_asking
        await asyncio.sleep(0)
        assert rig.tools.called == [("home", "notes", "{}")]
