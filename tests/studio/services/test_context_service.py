"""How much of the window a chat takes, what is cut when it is too much, and what the model is given then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from engine.api import Chat, Prompt, Started, TokenDelta, Tool
from engine.client import EngineClient
from fakes.fake_engine import FakeEngine
from studio.models.chat import (
    THIS_PROMPT,
    ContextCut,
    Conversation,
    Message,
    MessageStatus,
    ReplyStats,
    Role,
)
from studio.models.chat_settings import ChatSettings
from studio.models.tool_use import ChatTools
from studio.services.chat_prompt import prompt_for
from studio.services.context_service import ContextService, CutPlan
from studio.services.reply_fold import ReplyFold


def chat_of(num_turns: int, *, words: int = 100) -> Conversation:
    """Each message has `words` words, which the fake engine takes for as many tokens."""
    chat = Conversation(1, "Chat", 0.0, 0.0, is_loaded=True)
    chat.settings = ChatSettings(system_prompt="be kind")
    for number in range(2 * num_turns):
        role = Role.ASSISTANT if number % 2 else Role.USER
        text = " ".join([f"m{number}"] + ["w"] * (words - 1))
        chat.append(Message(number + 1, 1, role, text, 0.0))
    return chat


@asynccontextmanager
async def service(engine: FakeEngine | None = None) -> AsyncIterator[ContextService]:
    client = EngineClient(engine or FakeEngine(), asyncio.get_running_loop())
    yield ContextService(client)
    client.close()


class Tools:
    """Known once they have been asked for, if the chat wants any."""

    def __init__(self, *tools: Tool) -> None:
        self.tools = tools
        self.is_heard = False

    def known_tools(self, chat: Conversation) -> tuple[Tool, ...]:
        return self.tools if self.is_heard and chat.tools.servers else ()

    async def hear_of_tools(self, chat: Conversation) -> None:
        self.is_heard = True


def use(chat: Conversation, draft: str) -> tuple[int, int, bool] | None:
    async def ask() -> tuple[int, int, bool] | None:
        async with service() as made:
            found = await made.use(chat, draft)
            return (found.tokens, found.window_tokens, found.fits) if found else None

    return asyncio.run(ask())


def plan(chat: Conversation, draft: str) -> CutPlan | None:
    async def ask() -> CutPlan | None:
        async with service() as made:
            return await made.plan_cut(chat, draft)

    return asyncio.run(ask())


def test_system_prompt_chat_and_draft_are_counted_as_they_would_be_sent() -> None:
    assert use(chat_of(3), "one two three") == (2 + 600 + 3, 2048, True)
    assert use(Conversation(1, "Empty", 0.0, 0.0, is_loaded=True), "") == (0, 2048, True)


def test_tools_are_counted_where_something_is_said_and_where_nothing_is_yet() -> None:
    tool = Tool(name="weather", description="Tells the weather.", parameters="{}")

    async def ask() -> None:
        client = EngineClient(FakeEngine(), asyncio.get_running_loop())
        made = ContextService(client, Tools(tool))
        for chat, plain in ((chat_of(3), 605), (Conversation(1, "Empty", 0.0, 0.0), 0)):
            draft = "one two three" if chat.messages else ""
            for servers, more in (((), 0), (("home",), 5)):
                chat.tools = ChatTools(servers=servers)
                for count in (made.use, made.estimate):
                    found = await count(chat, draft)
                    assert found is not None
                    assert found.tokens == plain + more
        client.close()

    asyncio.run(ask())


def test_the_tools_of_a_long_chat_are_counted_when_they_become_known() -> None:
    tools = Tools(Tool(name="weather", description="Tells the weather.", parameters="{}"))

    async def ask() -> None:
        client = EngineClient(FakeEngine(), asyncio.get_running_loop())
        made, chat = ContextService(client, tools), chat_of(200, words=110)
        chat.tools = ChatTools(servers=("home",))
        for more in (0, 5):
            found = await made.estimate(chat, "x")
            assert found is not None
            assert found.tokens == 400 * 110 + 2 + 1 + more
            tools.is_heard = True
        client.close()

    asyncio.run(ask())


def test_before_sending_tools_are_asked_for_and_what_they_take_is_told_where_there_is_no_room() -> (
    None
):
    long = Tool(name="weather", description="words " * 3000, parameters="{}")

    async def ask() -> None:
        client = EngineClient(FakeEngine(), asyncio.get_running_loop())
        made, chat = ContextService(client, Tools(long)), chat_of(1)
        chat.tools = ChatTools(servers=("home",))
        found = await made.use(chat, "one two three")
        assert found is not None
        assert (found.tokens - found.tools_tokens, found.fits) == (205, False)
        assert found.tools_tokens > 3000
        assert found.fits_without_tools
        found = await made.use(chat, "word " * 2500)
        assert found is not None
        assert not found.fits_without_tools
        client.close()

    asyncio.run(ask())


def test_a_reply_that_is_being_written_is_counted_by_what_the_engine_says() -> None:
    chat = chat_of(1)
    stats = ReplyStats(prompt_tokens=120, completion_tokens=30)
    chat.append(Message(9, 1, Role.ASSISTANT, "w w", 0.0, MessageStatus.WRITING, stats=stats))
    assert use(chat, "one two") == (152, 2048, True)


def test_a_reply_that_is_gone_on_with_is_counted_once() -> None:
    chat = chat_of(1)
    reply = Message(9, 1, Role.ASSISTANT, "w w", 0.0, MessageStatus.INTERRUPTED)
    reply.stats = ReplyStats(prompt_tokens=90, completion_tokens=30)
    reply.status = MessageStatus.QUEUED
    chat.append(reply)
    fold = ReplyFold(reply, asked_s=0.0)
    assert use(chat, "one two") == (122, 2048, True)
    fold.apply(Started(request_id="r", prompt_tokens=120, cached_tokens=0, queued_s=0.0), 0.0)
    assert use(chat, "one two") == (122, 2048, True), "the prompt that is read has the reply in it"
    fold.apply(TokenDelta(request_id="r", text=" w", token_ids=(1, 2)), 1.0)
    assert use(chat, "one two") == (124, 2048, True)


def test_a_long_chat_is_not_counted_again_for_every_key() -> None:
    chat, engine = chat_of(200, words=110), FakeEngine()
    chat.settings = ChatSettings()
    counted: list[Prompt] = []
    count = engine.count_tokens

    def note(prompt: Prompt) -> int | None:
        counted.append(prompt)
        return count(prompt)

    engine.count_tokens = note  # type: ignore[method-assign]

    async def ask() -> None:
        async with service(engine) as made:
            for words in range(1, 6):
                found = await made.estimate(chat, "x " * words)
                assert found is not None
                assert found.tokens == 400 * 110 + words
            assert sum(isinstance(prompt, Chat) for prompt in counted) == 1
            chat.messages[-1].text += " more"
            found = await made.estimate(chat, "x")
            assert found is not None
            assert found.tokens == 400 * 110 + 2

    asyncio.run(ask())


def test_without_a_model_nothing_is_said() -> None:
    async def ask() -> None:
        async with service(FakeEngine(ready=False)) as made:
            assert await made.use(chat_of(1), "x") is None
            assert made.larger_pool(100) is None

    asyncio.run(ask())


@pytest.mark.parametrize(("num_turns", "left_out"), [(11, 6), (15, 14), (40, 64)])
def test_as_few_of_the_oldest_turns_are_left_out_as_make_room(
    num_turns: int, left_out: int
) -> None:
    chat = chat_of(num_turns)
    found = plan(chat, "x " * 10)
    assert found is not None
    assert found.num_messages == left_out
    assert found.tokens == 2 + (2 * num_turns - left_out) * 100 + 10
    assert found.tokens <= 2048 - 2048 // 8 < found.tokens + 200
    assert found.cut.first_id == chat.messages[left_out].message_id
    assert chat.messages[left_out].role is Role.USER


def test_a_draft_that_is_too_long_alone_cannot_be_helped_by_that() -> None:
    assert plan(chat_of(5), "x " * 3000) is None
    assert plan(chat_of(1), "x " * 3000) is None


def test_all_that_was_said_is_left_out_where_one_turn_has_filled_the_window() -> None:
    chat = chat_of(1, words=1020)
    found = plan(chat, "and then")
    assert found == CutPlan(ContextCut(first_id=THIS_PROMPT), num_messages=2, tokens=4)
    prompt = Message(9, 1, Role.USER, "and then", 0.0)
    prompt.stats.reads_from_id = THIS_PROMPT
    chat.append(prompt)
    assert given(chat) == ["be", "and"]


def given(chat: Conversation) -> list[str]:
    return [message.content.split()[0] for message in prompt_for(chat).messages]


def test_what_was_cut_is_not_given_from_that_prompt_on() -> None:
    chat = chat_of(4)
    assert given(chat) == ["be", *(f"m{n}" for n in range(8))]
    chat.messages[6].stats.reads_from_id = 5
    chat.messages[6].stats.summary = "They greeted each other."
    assert chat.cut == ContextCut(first_id=5, summary="They greeted each other.")
    assert given(chat) == ["be", "m4", "m5", "m6", "m7"]
    assert "They greeted each other." in prompt_for(chat).messages[0].content
    chat.messages[6].stats.reads_from_id = 99  # a message that was deleted
    assert len(given(chat)) == 9


def test_another_cut_goes_on_from_the_one_before() -> None:
    chat = chat_of(12)
    chat.messages[20].stats.reads_from_id, chat.messages[20].stats.summary = 5, "Before."
    assert use(chat, "x") == (2 + 2000 + 1 + 7, 2048, True)
    found = plan(chat, "x " * 60)
    assert found is not None
    assert found.num_messages > 4
    assert found.cut.summary == "Before."


def test_the_model_sums_up_what_is_left_out() -> None:
    engine = FakeEngine(reply="<think>hm</think> A summary.")
    chat = chat_of(11)

    async def ask() -> CutPlan | None:
        async with service(engine) as made:
            first = await made.plan_cut(chat, "x")
            assert first is not None
            return await made.summarise(chat, first)

    summed = asyncio.run(ask())
    assert summed is not None
    assert summed.cut.summary == "A summary."
    (request,) = engine.requests.values()
    assert isinstance(request.prompt, Chat)
    asked = request.prompt.messages[0].content
    assert "user: m0" in asked
    assert "m10" not in asked


def test_a_pool_that_would_do_is_offered_only_as_far_as_the_model_reads() -> None:
    async def ask() -> None:
        async with service() as made:
            larger = made.larger_pool(2000)
            assert larger is not None
            assert larger.pool_tokens == 2560
            assert made.larger_pool(2048) is None

    asyncio.run(ask())
