"""The tools of chats: what a reply may call, the user's word on each call, and the calls themselves.

GUI thread, asyncio, no Qt. All that is decided stands in the message and is stored before anything runs, so that a chat
that waits for its user waits again after a restart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from enum import Enum

from engine.api import Stay, Tool
from studio.models.chat import Conversation, Message, MessageStatus, Role
from studio.models.errors import ToolServerError
from studio.models.signal import Signal
from studio.models.tool_servers import LinkState
from studio.models.tool_settings import ToolSettings
from studio.models.tool_use import ToolUse, ToolUseState
from studio.services.call_rows import settled
from studio.services.chat_book import ChatBook
from studio.services.chat_prompt import Toolbox
from studio.services.chat_records import ChatRecords
from studio.services.history_rows import valid_text
from studio.services.notice_service import NoticeService
from studio.services.tools.answers import MOST_CHARS, shortened
from studio.services.tools.naming import Offered, offered
from studio.services.tools.tool_service import ToolService

_LEAST_CHARS = 500


class Verdict(Enum):
    """The user's word on a call."""

    ONCE = "once"
    ALWAYS = "always"
    """For this tool in this chat."""
    DENY = "deny"


class ToolDesk:
    """`settle` carries out the calls of a reply; `answer` is the user's word, which may come before and long after."""

    def __init__(
        self,
        book: ChatBook,
        records: ChatRecords,
        service: ToolService,
        *,
        settings: Callable[[], ToolSettings],
        notices: NoticeService,
        window_tokens: Callable[[], int] = lambda: 0,
    ) -> None:
        """`window_tokens` is what a request may hold, 0 if that is not known: no result takes most of it."""
        self.asked: Signal[[Conversation, Message]] = Signal()
        """A reply has called tools, and the user is asked."""
        self.unattended: Signal[[Conversation, Message]] = Signal()
        """The user has answered a reply that nobody carries on."""
        self.service = service
        self._book = book
        self._records = records
        self._settings = settings
        self._notices = notices
        self._window_tokens = window_tokens
        self._offers: dict[int, dict[str, Offered]] = {}
        """By chat: the tools that its last reply was offered, by the name that the model knows."""
        self._told: set[str] = set()
        """Servers of which a notice says that they do not work."""
        self._news: dict[int, asyncio.Event] = {}
        """By message: set when the user has said something. Those of replies that are carried on."""
        service.changed.connect(self._on_server)

    # --- what a reply may call

    async def toolbox(self, chat: Conversation) -> Toolbox | None:
        """The tools of a chat, whose servers are started where they are not running; None for a chat without any.

        A server that does not start is told in a notice; the reply goes on without its tools.
        """
        if not chat.tools.servers:
            return None
        listed = await self.service.tools_of(chat.tools.servers)
        for name in chat.tools.servers:
            problem = self.service.status(name).problem
            if name not in listed and problem:
                self._told.add(name)
                self._notices.report(ToolServerError(problem))
        offer = offered(listed)
        self._offers[chat.chat_id] = {one.name: one for one in offer}
        settings = self._settings()
        return Toolbox(
            tools=tuple(_engine_tool(one) for one in offer),
            may_call=rounds_of(chat) < settings.most_rounds,
            stay=Stay(grace_s=settings.grace_s),
        )

    def known_tools(self, chat: Conversation) -> tuple[Tool, ...]:
        """What its next reply would be offered, as far as its servers have been heard of; nothing is started."""
        return tuple(map(_engine_tool, offered(self.service.known_tools(chat.tools.servers))))

    async def hear_of_tools(self, chat: Conversation) -> None:
        """Start those of its servers that were not asked for yet, and return when each has said what it offers.

        One that does not start is told of when a reply has to do without it.
        """
        await self.service.hear_of(chat.tools.servers)

    # --- calls

    async def settle(self, chat: Conversation, reply: Message) -> None:
        """Carry out the calls of a reply, each once the user has allowed it; returns when none is open.

        To cancel it is to give up those that run.
        """
        news = self._news.setdefault(reply.message_id, asyncio.Event())
        running: dict[str, asyncio.Task[None]] = {}
        try:
            await self._records.flush()
            while any(use.state.is_open for use in reply.calls):
                for use in reply.calls:
                    if use.state is ToolUseState.ALLOWED and use.call_id not in running:
                        work = self._carry_out(chat, reply, use, news)
                        running[use.call_id] = asyncio.create_task(work)
                await news.wait()
                news.clear()
                for task in [one for one in running.values() if one.done()]:
                    task.result()
        finally:
            del self._news[reply.message_id]
            for task in running.values():
                task.cancel()
            await asyncio.gather(*running.values(), return_exceptions=True)

    def begin(self, chat: Conversation, reply: Message) -> None:
        """A reply has ended with calls: find out which tools are meant, and ask the user where that is to be."""
        offer = self._offers.get(chat.chat_id, {})
        known: set[str] = set()
        calls = []
        for number, use in enumerate(reply.calls):
            call_id = use.call_id if use.call_id and use.call_id not in known else f"call_{number}"
            known.add(call_id)
            calls.append(_begun(chat, replace(use, call_id=call_id), offer.get(use.name)))
        reply.calls = tuple(calls)
        self._tell(chat, reply)
        if reply.is_asking:
            self.asked.emit(chat, reply)

    def answer(
        self, chat: Conversation, reply: Message, call_id: str, verdict: Verdict, *, word: str = ""
    ) -> None:
        """The user's word on a call, with what the model is told where it is denied; a call that is not asked stays."""
        use = next((one for one in reply.calls if one.call_id == call_id), None)
        if use is None or not reply.is_asking or use.state is not ToolUseState.ASKED:
            return
        if verdict is Verdict.ALWAYS and not chat.tools.allows(use):
            pair = (use.server, use.tool)
            chat.tools = replace(chat.tools, always=(*chat.tools.always, pair))
            self._records.save_chat(chat)
        denied = replace(use, state=ToolUseState.DENIED, result=valid_text(word.strip()))
        for_once = None if verdict is Verdict.DENY else replace(use, state=ToolUseState.ALLOWED)
        reply.calls = tuple(
            (for_once or denied) if one is use else _begun_again(chat, one) for one in reply.calls
        )
        self._tell(chat, reply)
        if (news := self._news.get(reply.message_id)) is not None:
            news.set()
        else:
            self.unattended.emit(chat, reply)

    @staticmethod
    def give_up(reply: Message) -> None:
        """The user has stopped the reply: what is open will not be done."""
        reply.calls = settled(reply.calls)

    # --- how

    def _on_server(self, name: str) -> None:
        """The notice goes once all servers that it told of run or are switched off."""
        if name in self._told and self.service.status(name).state in (
            LinkState.READY,
            LinkState.OFF,
        ):
            self._told.discard(name)
            if not self._told:
                self._notices.resolve(ToolServerError.code)

    async def _carry_out(
        self, chat: Conversation, reply: Message, use: ToolUse, news: asyncio.Event
    ) -> None:
        running = replace(use, state=ToolUseState.RUNNING, was_interrupted=False)
        use = self._put(chat, reply, running)
        await self._records.flush()
        try:
            answer = await self.service.call(
                use.server, use.tool, use.arguments, timeout_s=self._settings().timeout_s
            )
        except ToolServerError as error:
            self._put(chat, reply, _ended(use, str(error), is_error=True))
        else:
            text = shortened(answer.text, self._most_chars())
            self._put(chat, reply, _ended(use, text, is_error=answer.is_error))
        finally:
            news.set()

    def _most_chars(self) -> int:
        """Of a result: a third of the window or so, as most texts are written."""
        window = self._window_tokens()
        return max(_LEAST_CHARS, window) if window else MOST_CHARS

    def _put(self, chat: Conversation, reply: Message, use: ToolUse) -> ToolUse:
        reply.calls = tuple(use if one.call_id == use.call_id else one for one in reply.calls)
        self._tell(chat, reply)
        return use

    def _tell(self, chat: Conversation, reply: Message) -> None:
        self._records.save_message(chat, reply)
        self._book.message_changed.emit(reply)
        self._book.chat_changed.emit(chat)


def rounds_of(chat: Conversation) -> int:
    """Replies with calls since the user's last message."""
    count = 0
    for message in reversed(chat.messages):
        if message.role is Role.USER:
            break
        count += bool(message.calls)
    return count


def can_go_on_after_calls(message: Message) -> bool:
    """Whether a reply was interrupted or stopped after it had called tools: the model has still to be told of them."""
    ended = (MessageStatus.INTERRUPTED, MessageStatus.STOPPED)
    return bool(message.calls) and message.status in ended


def _begun(chat: Conversation, use: ToolUse, meant: Offered | None) -> ToolUse:
    if meant is None:
        words = f"there is no tool called {use.name!r}"
        return replace(use, state=ToolUseState.FAILED, result=words)
    use = replace(use, server=meant.server, tool=meant.facts.name)
    is_allowed = chat.tools.allows(use)
    return replace(use, state=ToolUseState.ALLOWED if is_allowed else ToolUseState.ASKED)


def _begun_again(chat: Conversation, use: ToolUse) -> ToolUse:
    """Another call of the same reply: it may be allowed now too."""
    if use.state is ToolUseState.ASKED and chat.tools.allows(use):
        return replace(use, state=ToolUseState.ALLOWED)
    return use


def _ended(use: ToolUse, text: str, *, is_error: bool) -> ToolUse:
    state = ToolUseState.FAILED if is_error else ToolUseState.DONE
    return replace(use, state=state, result=valid_text(text))


def _engine_tool(one: Offered) -> Tool:
    facts = one.facts
    return Tool(
        name=one.name, description=facts.description or facts.title, parameters=facts.parameters
    )
