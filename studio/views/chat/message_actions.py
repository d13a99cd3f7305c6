"""What can be done with a message, and doing it: edit, answer again, continue, branch, delete, other versions.

GUI thread. Asks the services; the transcript shows what they made of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from engine.errors import ContextLengthExceeded
from studio.models.chat import Conversation, Message, Role
from studio.models.notices import Notice, NoticeLevel
from studio.views.chat.chat_view import ChatView
from studio.views.chat.foot_view import FootView, MessageAction
from studio.views.chat.overflow_panel import too_long_words
from studio.views.context import Context
from studio.views.words import tr

_TOO_LONG = ContextLengthExceeded.code


class MessageActions:
    """Of one transcript. `show_chat` is called with a branch; `may_ask` says why not where there is no model."""

    def __init__(
        self,
        chat: Conversation,
        view: ChatView,
        context: Context,
        *,
        show_chat: Callable[[Conversation], object],
        may_ask: Callable[[], bool],
    ) -> None:
        self._chat = chat
        self._view = view
        self._chats = context.services.chats
        self._notices = context.services.notices
        self._tasks = context.tasks
        self._show_chat = show_chat
        self._may_ask = may_ask
        view.events.foot_made.connect(self._dress)
        view.events.action_wanted.connect(self._do)
        view.events.edit_wanted.connect(self._on_edited)
        self.refresh()

    def refresh(self) -> None:
        """Offer what is possible now, below every message that is on screen."""
        for foot in self._view.feet:
            self._dress(foot)

    def actions_of(self, message: Message) -> frozenset[MessageAction]:
        """What can be done with a message now; of a chat that answers, what does not disturb it or begins anew."""
        action = MessageAction
        possible = {action.COPY, action.BRANCH, action.PREVIOUS, action.NEXT}
        is_reply, is_last = message.role is Role.ASSISTANT, message is self._chat.messages[-1]
        is_running = self._chat.running_message is not None
        if not is_reply or not is_running:
            possible.add(action.EDIT)
        if (is_reply and not message.status.is_alive) or (is_last and not is_reply):
            possible.add(action.REGENERATE)
        if not is_running:
            possible.add(action.DELETE)
        if is_last and self._chats.turns.can_continue(self._chat):
            possible.add(action.CONTINUE)
        return frozenset(possible)

    def can_do_to_last(self, action: MessageAction) -> bool:
        """Whether it can be done with the last message now."""
        return bool(self._chat.messages) and action in self.actions_of(self._chat.messages[-1])

    def do_to_last(self, action: MessageAction) -> None:
        """Do it with the last message, where that can be."""
        if self.can_do_to_last(action):
            self._do(self._chat.messages[-1], action)

    def _dress(self, foot: FootView) -> None:
        message = foot.message
        if message not in self._chat.messages:
            return
        versions = self._chat.versions_of(message)
        number = versions.index(message) + 1 if message in versions else 1
        foot.show_actions(self.actions_of(message), (number, max(1, len(versions))))

    def _do(self, message: Message, action: MessageAction) -> None:
        chat, chats = self._chat, self._chats
        match action:
            case MessageAction.EDIT:
                self._view.start_edit(message)
            case MessageAction.REGENERATE if self._may_ask():
                self._tasks.start(chats.turns.regenerate(chat, message))
            case MessageAction.CONTINUE if self._may_ask():
                chats.turns.continue_reply(chat)
            case MessageAction.BRANCH:
                self._tasks.start(self._branch(message))
            case MessageAction.DELETE:
                self._tasks.start(chats.versions.delete_message(chat, message))
            case MessageAction.PREVIOUS | MessageAction.NEXT:
                self._step(message, action)
            case _:
                pass

    def _step(self, message: Message, action: MessageAction) -> None:
        if self._chat.running_message is not None:
            words = tr("Another version can be shown when the reply has ended. Esc stops it.")
            for foot in self._view.feet:
                if foot.message is message:
                    foot.tell(action, words)
            return
        versions = self._chat.versions_of(message)
        place = versions.index(message) + (1 if action is MessageAction.NEXT else -1)
        if 0 <= place < len(versions):
            self._chats.versions.choose(self._chat, versions[place])

    async def _branch(self, message: Message) -> None:
        made = await self._chats.versions.branch(self._chat, message)
        if made is not None:
            self._show_chat(made)

    def _on_edited(self, message: Message, text: str) -> None:
        if text == message.text:
            self._view.start_edit(message, is_edited=False)
        elif message.role is Role.ASSISTANT:
            self._tasks.start(self._chats.versions.edit_reply(self._chat, message, text))
        elif self._may_ask():
            self._tasks.start(self._edit_prompt(message, text))

    async def _edit_prompt(self, prompt: Message, text: str) -> None:
        """Ask again, unless there is no room for it: then the editor stays, and it is said."""
        before = self._chat.messages[: self._chat.messages.index(prompt)]
        asked = replace(self._chat, messages=before, draft_attachments=prompt.attachments)
        use = await self._chats.context.use(asked, text)
        if use is None or use.fits:
            await self._chats.turns.edit_prompt(self._chat, prompt, text)
            return
        told = too_long_words(use)
        self._notices.show(Notice(code=_TOO_LONG, level=NoticeLevel.WARNING, text=told))
