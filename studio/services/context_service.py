"""How much of the model's window a chat takes, and what to do when it is too much. GUI thread, asyncio, no Qt.

Counts are the engine's own: the whole prompt by the model's template, with the draft as it would be sent, and the
tools that it would be sent with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from engine.api import (
    Chat,
    ChatMessage,
    EngineState,
    Failed,
    LoadOptions,
    Origin,
    Priority,
    Request,
    SamplingParams,
    Text,
    TokenDelta,
    Tool,
)
from engine.client import EngineClient
from engine.errors import EngineError
from studio.models.chat import (
    THIS_PROMPT,
    ContextCut,
    Conversation,
    Message,
    MessageStatus,
    Role,
    summary_request_id,
)
from studio.models.length_limit import LengthLimit, window_limit
from studio.models.thoughts import without_thoughts
from studio.models.tool_use import ChatTools
from studio.services.chat_prompt import content_of, messages_after, prompt_for, with_tools

_REPLY_SHARE = 8
"""A cut leaves at least this part of the window to the reply."""
_LEAST_REPLY_TOKENS = 16
_SUMMARY_TOKENS = 300
_SUMMARISE = (
    "Summarise the conversation below in at most 150 words, for somebody who will go on with it. Keep names, numbers, "
    "decisions and open questions. Write the summary only.\n\n{text}"
)
_ROOM = 1.25
"""A larger pool is larger by this than what is needed now."""
_POOL_STEP = 256
_LONG_CHARS = 40_000
_PROBE = "word"


@dataclass(frozen=True, slots=True)
class ContextUse:
    """Tokens of a prompt as it would be sent, and the most that a request may hold."""

    tokens: int
    window_tokens: int
    is_pool_limit: bool = False
    """The model could read more at once; the pool has no more room."""
    tools_tokens: int = 0
    """What of them the tools take; counted where there is no room."""

    @property
    def fits(self) -> bool:
        """Whether there is room for it and the beginning of a reply."""
        return self.tokens < self.window_tokens

    @property
    def fits_without_tools(self) -> bool:
        """The same of all but the tools."""
        return self.tokens - self.tools_tokens < self.window_tokens


@dataclass(frozen=True, slots=True)
class CutPlan:
    """What leaving out the oldest messages would come to."""

    cut: ContextCut
    num_messages: int
    """How many are left out."""
    tokens: int
    """What is sent then."""


class ToolSource(Protocol):
    """Where the tools of chats are known."""

    def known_tools(self, chat: Conversation) -> tuple[Tool, ...]:
        """Those that its next reply would be offered, as far as they are known."""

    async def hear_of_tools(self, chat: Conversation) -> None:
        """Return once it is known which those are."""


class ContextService:
    """Nothing here changes a chat."""

    def __init__(self, client: EngineClient, tools: ToolSource | None = None) -> None:
        """Without `tools` no chat has any."""
        self._client = client
        self._tools = tools
        self._num_summaries = 0
        self._bases: dict[int, tuple[object, int]] = {}
        """Of each long chat: what it was when it was counted, and its tokens without a draft."""

    async def use(self, chat: Conversation, draft: str) -> ContextUse | None:
        """What the chat with this draft takes; None without a model, or where its template does not take the chat.

        Tools that are not known yet are asked for first, which may start their servers.
        """
        if self._tools is not None:
            await self._tools.hear_of_tools(chat)
        use = await self._use_known(chat, draft)
        if use is None or use.fits or not self._tools_of(chat):
            return use
        without = await self._use_known(replace(chat, tools=ChatTools()), draft)
        return replace(use, tools_tokens=use.tokens - without.tokens) if without else use

    async def estimate(self, chat: Conversation, draft: str) -> ContextUse | None:
        """The same to within a few tokens, for every key that is pressed: a long chat is not read again each time."""
        is_long = sum(len(message.text) for message in chat.messages) > _LONG_CHARS
        if not is_long or chat.running_message is not None or not draft:
            return await self._use_known(chat, draft)
        last = chat.messages[-1]
        state = (
            last.message_id,
            last.text,
            chat.cut,
            chat.settings,
            chat.draft_attachments,
            self._tools_of(chat),
        )
        known = self._bases.get(chat.chat_id)
        if known is None or known[0] != state:
            whole = await self._use_known(chat, _PROBE)
            probe = await self._client.count_tokens(Text(text=_PROBE))
            if whole is None or probe is None:
                return None
            known = self._bases[chat.chat_id] = (state, whole.tokens - probe)
        tokens = await self._client.count_tokens(Text(text=draft))
        return self._use_of(None if tokens is None else known[1] + tokens)

    async def plan_cut(self, chat: Conversation, draft: str) -> CutPlan | None:
        """Leave out as few of the oldest turns as make room for the draft and a reply; None if none would."""
        window_tokens = self._client.snapshot().window_tokens
        limit = window_tokens - max(_LEAST_REPLY_TOKENS, window_tokens // _REPLY_SHARE)
        given = messages_after(chat, chat.cut)
        starts = [one.message_id for one in given if one.role is Role.USER][1:]
        starts += [THIS_PROMPT] if given else []
        summary = chat.cut.summary if chat.cut else ""
        places = {one.message_id: place for place, one in enumerate(chat.messages)}
        low, high, best = 0, len(starts), None
        while low < high:
            middle = (low + high) // 2
            cut = ContextCut(first_id=starts[middle], summary=summary)
            tokens = await self._count(chat, draft, cut)
            if tokens is not None and tokens <= limit:
                left_out = places.get(starts[middle], len(chat.messages))
                best, high = CutPlan(cut, left_out, tokens), middle
            else:
                low = middle + 1
        return best

    async def summarise(self, chat: Conversation, plan: CutPlan) -> CutPlan | None:
        """Have the model sum up what a plan leaves out, as the plan's summary; None if it could not."""
        parts = [
            f"{one.role.value}: {content_of(one)}" for one in chat.messages[: plan.num_messages]
        ]
        if chat.cut is not None and chat.cut.summary:
            parts.insert(0, chat.cut.summary)
        text = await self._shortened("\n\n".join(parts))
        summary = without_thoughts(await self._answer(_SUMMARISE.format(text=text))).strip()
        if not summary:
            return None
        return replace(plan, cut=replace(plan.cut, summary=summary))

    def larger_pool(self, needed_tokens: int) -> LoadOptions | None:
        """Options to load the model with, so that a prompt of so many tokens fits; None if it never could."""
        now = self._client.snapshot()
        if now.state is not EngineState.READY or now.model is None or now.options is None:
            return None
        wanted = -(-int(needed_tokens * _ROOM) // _POOL_STEP) * _POOL_STEP
        if needed_tokens >= now.model.context_tokens:
            return None
        return replace(now.options, pool_tokens=max(wanted, now.options.pool_tokens))

    def _tools_of(self, chat: Conversation) -> tuple[Tool, ...]:
        return () if self._tools is None else self._tools.known_tools(chat)

    async def _use_known(self, chat: Conversation, draft: str) -> ContextUse | None:
        tokens = await self._count_running(chat, draft)
        if tokens is None:
            tokens = await self._count(chat, draft, chat.cut)
        return self._use_of(tokens)

    def _use_of(self, tokens: int | None) -> ContextUse | None:
        now = self._client.snapshot()
        if tokens is None or not now.window_tokens:
            return None
        is_pool_limit = window_limit(now) is LengthLimit.POOL
        return ContextUse(tokens, now.window_tokens, is_pool_limit=is_pool_limit)

    async def _count_running(self, chat: Conversation, draft: str) -> int | None:
        """While a reply grows: what it has read and written, by the engine's own figures, and the draft alone."""
        reply = chat.running_message
        if reply is None or reply.stats.prompt_tokens is None:
            return None
        written = (reply.stats.completion_tokens or 0) - reply.prompt_share_tokens
        tokens = reply.stats.prompt_tokens + written
        if text := content_of(_prompt(chat, draft)):
            tokens += await self._client.count_tokens(Text(text=text)) or 0
        return tokens

    async def _count(self, chat: Conversation, draft: str, cut: ContextCut | None) -> int | None:
        prompt = _prompt(chat, draft)
        if cut is not None:
            prompt.stats.reads_from_id, prompt.stats.summary = cut.first_id, cut.summary
        asked = prompt_for(replace(chat, messages=[*chat.messages, prompt]))
        tools = self._tools_of(chat)
        if not asked.messages:
            return await self._count_tools(chat) if tools else 0
        try:
            return await self._client.count_tokens(with_tools(asked, tools))
        except EngineError:
            return None

    async def _count_tools(self, chat: Conversation) -> int | None:
        """What the tools of a chat take in which nothing is said yet: templates want a message to put them to."""
        whole = await self._count(chat, _PROBE, None)
        probe = await self._client.count_tokens(Text(text=_PROBE))
        return None if whole is None or probe is None else whole - probe

    async def _shortened(self, text: str) -> str:
        """The end of a text, as much as there is room for beside the question and the summary."""
        window_tokens = self._client.snapshot().window_tokens
        room = window_tokens - _SUMMARY_TOKENS - 100
        prompt = Chat(messages=(ChatMessage(role=Role.USER.value, content=text),))
        tokens = await self._client.count_tokens(prompt) or 0
        if tokens <= room:
            return text
        return text[-max(1, int(len(text) * max(0, room) / tokens * 0.9)) :]

    async def _answer(self, question: str) -> str:
        self._num_summaries += 1
        request = Request(
            request_id=summary_request_id(self._num_summaries),
            origin=Origin.GUI,
            prompt=Chat(messages=(ChatMessage(role=Role.USER.value, content=question),)),
            sampling=SamplingParams(temperature=0.3),
            max_tokens=_SUMMARY_TOKENS,
            priority=Priority.INTERACTIVE,
        )
        text = ""
        async with self._client.stream(request) as events:
            async for event in events:
                if isinstance(event, TokenDelta):
                    text += event.text
                elif isinstance(event, Failed):
                    raise event.error
        return text


def _prompt(chat: Conversation, draft: str) -> Message:
    """The draft with its files, as a message."""
    made = Message(0, chat.chat_id, Role.USER, draft, 0.0, MessageStatus.DONE)
    made.attachments = chat.draft_attachments
    return made
