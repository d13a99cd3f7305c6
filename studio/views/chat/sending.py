"""From the composer to the chat: sent, queued behind a running reply or for a model, or first made to fit.

GUI thread.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication

from engine.api import EngineState
from engine.errors import ModelUnavailable
from studio.models.chat import ContextCut, Conversation
from studio.models.errors import StudioError
from studio.models.notices import Notice, NoticeLevel
from studio.models.tool_use import ChatTools
from studio.services.context_service import ContextUse, CutPlan
from studio.services.reload_service import ReloadChoice, Target
from studio.views.chat.composer import Composer
from studio.views.chat.counting_word import CountingWord
from studio.views.chat.overflow_panel import OverflowPanel
from studio.views.chat.queued_bar import QueuedBar
from studio.views.context import Context
from studio.views.words import tr


@dataclass(frozen=True, slots=True)
class _TooLong:
    """What the panel asks about."""

    chat: Conversation
    text: str
    tools: ChatTools
    use: ContextUse
    plan: CutPlan | None


class Sending(QObject):
    """One for each pane; `show_chat` tells it whose messages these are.

    `counted` carries the ContextUse of a message that is too long: what else shows one is to say the same.
    `tools_wanted` asks for the place where the chat's tools are chosen.
    """

    counted = Signal(object)
    tools_wanted = Signal()

    def __init__(self, context: Context, composer: Composer, pane: QObject) -> None:
        super().__init__(pane)
        self._context = context
        self._chats = context.services.chats
        self._models = context.services.models
        self._composer = composer
        self._chat: Conversation | None = None
        self._too_long: _TooLong | None = None
        self.queued = QueuedBar(composer)
        self.overflow = OverflowPanel(composer)
        self._word = CountingWord(composer, self._chats.desk)
        self.queued.send_wanted.connect(self._send_queued)
        self.queued.take_back_wanted.connect(self._take_back)
        self.overflow.leave_out_wanted.connect(lambda: self._on_plan(self._leave_out))
        self.overflow.summarise_wanted.connect(lambda: self._on_plan(self._summarise))
        self.overflow.raise_wanted.connect(lambda: self._on_plan(self._raise_limit))
        self.overflow.tools_off_wanted.connect(lambda: self._on_plan(self._send_without_tools))
        self.overflow.tools_wanted.connect(self.tools_wanted)
        self.overflow.cancelled.connect(self._cancel)
        composer.submitted.connect(self._on_submitted)
        composer.queue_wanted.connect(self._on_queue_wanted)
        composer.edited.connect(self._close_overflow)

    def show_chat(self, chat: Conversation | None) -> None:
        """Send to this chat from now on."""
        self._chat = chat
        self._word.show_chat(chat)
        self._close_overflow()
        self.refresh()

    def refresh(self) -> None:
        """Show what waits to be sent; what turned out too long is asked about, unless something else is typed."""
        chat = self._chat
        queued = chat.queued if chat is not None else None
        is_running = chat is not None and chat.running_message is not None
        self.queued.show_prompt(queued, is_running=is_running)
        asked = self._too_long
        if chat is not None and asked is not None and asked.tools != chat.tools:
            self._context.tasks.start(self._count_again(asked))
        if chat is None or queued is None or not queued.is_too_long:
            return
        if not self._composer.text() and not chat.draft_attachments:
            self._context.tasks.start(self._ask_about_queued(chat))

    def may_ask(self) -> bool:
        """Whether a model is ready, or comes back with the next request; if not, why not is said."""
        if self._has_model():
            return True
        notices = self._context.services.notices
        if self._models.state is EngineState.LOADING:
            notices.show(_still(tr("The model is still loading; your text is kept.")))
        elif self._models.fetching is not None:
            notices.show(_still(tr("The model is still being fetched; your text is kept.")))
        else:
            notices.report(ModelUnavailable(tr("choose one first; your text is kept")))
        return False

    def _on_submitted(self, text: str) -> None:
        chat = self._chat
        if chat is None or self._word.is_counting(chat):
            return
        if not self._has_model() and self._models.is_coming and chat.queued is None:
            self._context.tasks.start(self._queue_for_model(chat, text))
        elif self.may_ask() and chat.queued is not None and chat.queued.waits_for_store:
            self._context.tasks.start(self._send_behind(chat, text))
        elif self.may_ask():
            self._context.tasks.start(self._send(chat, text))

    def _has_model(self) -> bool:
        return self._models.state is EngineState.READY or self._models.is_resting

    async def _queue_for_model(self, chat: Conversation, text: str) -> None:
        """Let it wait; the model may have become ready before it stood in the queue."""
        is_queued = await self._chats.drafts.queue_for_model(chat, text)
        if is_queued and chat is self._chat and self._composer.text() == text:
            self._composer.clear()
        if self._has_model():
            await self._chats.drafts.send_waiting(chat)

    async def _send_behind(self, chat: Conversation, text: str) -> None:
        is_queued = await self._chats.drafts.send_behind(chat, text)
        if is_queued and chat is self._chat and self._composer.text() == text:
            self._composer.clear()

    async def _send(self, chat: Conversation, text: str, cut: ContextCut | None = None) -> None:
        """Send, and empty the field only once that has worked and if nobody typed on meanwhile."""
        if cut is None and not await self._fits(chat, text):
            return
        is_sent = await self._chats.turns.send(chat, text, cut=cut)
        if is_sent and chat is self._chat and self._composer.text() == text:
            self._composer.clear()

    async def _fits(self, chat: Conversation, text: str) -> bool:
        """Whether there is room; if not, what can be done about it is asked, here or when the chat is looked at."""
        with self._word.counting(chat):
            use = await self._chats.context.use(chat, text)
            if use is None or use.fits:
                return True
            plan = await self._chats.context.plan_cut(chat, text)
        if chat is self._chat:
            self._ask(_TooLong(chat, text, chat.tools, use, plan))
        else:
            await self._chats.drafts.set_aside(chat, text)
        return False

    def _ask(self, asked: _TooLong, *, takes_keyboard: bool = True) -> None:
        self._too_long, use = asked, asked.use
        self.counted.emit(use)
        larger = self._chats.context.larger_pool(use.tokens)
        pool_tokens = larger.pool_tokens if larger is not None else None
        self.overflow.ask(use, asked.plan, pool_tokens=pool_tokens)
        if takes_keyboard:
            self.overflow.take_focus()

    async def _count_again(self, asked: _TooLong) -> None:
        """Other tools were chosen meanwhile: what was asked may be answered by that."""
        self._too_long = again = replace(asked, tools=asked.chat.tools)
        use = await self._chats.context.use(asked.chat, asked.text)
        plan = await self._chats.context.plan_cut(asked.chat, asked.text)
        if self._too_long is not again:
            return
        if use is None or use.fits:
            self._close_overflow()
        else:
            self._ask(replace(again, use=use, plan=plan), takes_keyboard=False)

    async def _send_without_tools(self, asked: _TooLong) -> None:
        self._close_overflow()
        self._chats.set_tools(asked.chat, replace(asked.chat.tools, servers=()))
        await self._send(asked.chat, asked.text)

    def _on_plan(self, do: Callable[[_TooLong], Coroutine[Any, Any, None]]) -> None:
        if (asked := self._too_long) is not None:
            self._context.tasks.start(do(asked))

    async def _leave_out(self, asked: _TooLong) -> None:
        self._close_overflow()
        if asked.plan is not None:
            await self._send(asked.chat, asked.text, asked.plan.cut)

    async def _summarise(self, asked: _TooLong) -> None:
        if asked.plan is None:
            return
        self.overflow.show_working()
        plan = await self._chats.context.summarise(asked.chat, asked.plan)
        if asked is self._too_long:  # nobody changed the message meanwhile
            self._close_overflow()
            await self._send(asked.chat, asked.text, (plan or asked.plan).cut)

    async def _raise_limit(self, asked: _TooLong) -> None:
        options = self._chats.context.larger_pool(asked.use.tokens)
        model = self._models.model
        self._close_overflow()
        if options is None or model is None:
            return
        target = Target(name=str(model.path), options=options)
        is_ready = await self._context.services.reloads.load(target, ReloadChoice.PARK)
        if is_ready:
            self._keep_pool(model.path, options.pool_tokens)
        if is_ready and asked.chat is self._chat and self._composer.text() == asked.text:
            await self._send(asked.chat, asked.text)

    def _keep_pool(self, model: Path, pool_tokens: int) -> None:
        try:
            self._models.load_settings.keep_pool(model, pool_tokens)
        except StudioError as error:
            self._context.services.notices.report(error)

    def _cancel(self) -> None:
        self._close_overflow()
        self._composer.setFocus()

    def _close_overflow(self) -> None:
        self._too_long = None
        focused = QApplication.focusWidget()
        if focused is not None and self.overflow.isAncestorOf(focused):
            self._composer.setFocus()  # or the keyboard would be at whatever comes next
        self.overflow.close_panel()

    def _on_queue_wanted(self, text: str) -> None:
        if self._chat is not None:
            self._context.tasks.start(self._queue(self._chat, text))

    async def _queue(self, chat: Conversation, text: str) -> None:
        is_queued = await self._chats.drafts.queue(chat, text)
        if is_queued and chat is self._chat and self._composer.text() == text:
            self._composer.clear()

    def _send_queued(self) -> None:
        chat = self._chat
        if chat is None or chat.queued is None:
            return
        if chat.queued.is_too_long:
            self._context.tasks.start(self._ask_about_queued(chat))
        elif self.may_ask():
            self._context.tasks.start(self._chats.drafts.send_now(chat))

    def _take_back(self) -> None:
        if self._chat is not None:
            self._context.tasks.start(self._put_back(self._chat))

    async def _ask_about_queued(self, chat: Conversation) -> None:
        if chat.queued is not None:  # it may have been asked about already
            await self._put_back(chat)
            await self._fits(chat, chat.draft)

    async def _put_back(self, chat: Conversation) -> None:
        draft = await self._chats.drafts.take_back(chat)
        if chat is self._chat:
            self._composer.set_text(draft)
            self._composer.setFocus()


def _still(words: str) -> Notice:
    """With the code of the error that it stands for, so that it goes when a model is ready."""
    return Notice(code=ModelUnavailable.code, level=NoticeLevel.INFO, text=words)
