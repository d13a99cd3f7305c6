"""Which chat is shown where, when the user asks for another one: new, beside, next, first. GUI thread."""

from __future__ import annotations

from studio.models.chat import NEW_CHAT_TITLE, Conversation
from studio.models.search_hit import FoundPlace
from studio.views.chat.chat_pane import ChatPane
from studio.views.chat_windows import ChatWindows
from studio.views.context import Context
from studio.views.panes import PaneArea


class ChatNavigation:
    """Returns at once; chats are read from the disk meanwhile."""

    def __init__(self, context: Context, panes: PaneArea) -> None:
        self._tasks = context.tasks
        self._service = context.services.chats
        self._panes = panes
        self.windows = ChatWindows(context, panes)

    def show(self, chat: Conversation) -> None:
        """Go to the pane or window that shows the chat, or show it in the active pane."""
        if not self.windows.bring_forward(chat):
            self._tasks.start(self._panes.show_chat(chat))

    def show_in_window(self, chat: Conversation) -> None:
        """Show a chat in a window of its own, and something else where it was."""
        pane = self._panes.pane_of(chat)
        if pane is not None and len(self._panes.panes) > 1:
            self._panes.close_pane(pane)
            self.windows.open(chat)
        elif pane is not None:
            self._tasks.start(self._move_to_window(chat))
        else:
            self.windows.open(chat)

    def show_found(self, chat: Conversation, place: FoundPlace | None) -> None:
        """The same, and go to one of its messages, in whichever version it is, with what was looked for marked."""
        self._tasks.start(self._show_found(chat, place))

    def show_temporary(self) -> None:
        """Show an empty chat of which nothing is ever saved."""
        self._tasks.start(self._show_temporary())

    def show_new(self) -> None:
        """Show an empty chat."""
        self._tasks.start(self._show_new())

    def show_new_with(self, draft: str) -> None:
        """Show an empty chat with this text in its field, not sent."""
        self._tasks.start(self._show_new_with(draft))

    def show_first(self) -> None:
        """Show the chat used last in the active pane, or a new one where there is none."""
        self._tasks.start(self._show_first())

    def split(self) -> None:
        """Show a chat that is on no pane yet in a new one; nothing if there is no room."""
        if self._panes.can_split:
            self._tasks.start(self._split())

    def show_beside(self, chat: Conversation) -> None:
        """Go to where the chat is shown, or show it in a new pane; nothing if there is no room."""
        pane = self._panes.pane_of(chat)
        if self.windows.bring_forward(chat):
            return
        if pane is not None:
            self._panes.activate(pane)
        elif self._panes.can_split:
            self._tasks.start(self._panes.split(chat))

    def show_asking(self) -> None:
        """Put the keyboard where a chat asks about a tool: in the active pane, or, if it is there already, the next."""
        if (chat := self._next_asking()) is None:
            return
        pane = self._pane_of(chat)
        if pane is not None and pane is self._panes.active:
            pane.approval.take_focus()
        else:
            self._tasks.start(self._show_asking(chat))

    def show_tools(self, chat_id: int) -> None:
        """Show a chat, and where its tools are chosen."""
        if (chat := self._service.book.find(chat_id)) is not None:
            self._tasks.start(self._show_tools(chat))

    @property
    def is_any_asking(self) -> bool:
        """Whether a chat waits for the user's word on a call."""
        return any(chat.is_asking for chat in self._service.chats)

    def step(self, places: int) -> None:
        """Show the chat so many places further down the list, skipping what stands in other panes."""
        active = self._panes.active
        free = [chat for chat in self._listed() if self._panes.pane_of(chat) in (None, active)]
        if active.chat in free and len(free) > 1:
            self.show(free[(free.index(active.chat) + places) % len(free)])

    async def _move_to_window(self, chat: Conversation) -> None:
        others = [one for one in self._listed() if one is not chat]
        await self._panes.active.show_chat(others[0] if others else await self._service.new_chat())
        self._panes.changed.emit()
        self.windows.open(chat)

    def _next_asking(self) -> Conversation | None:
        """In the order of the list, from the chat on that the keyboard is in."""
        chats, here = self._service.chats, self._chat_of_keyboard()
        place = chats.index(here) if here in chats else 0
        pane = self._pane_of(here) if here is not None else None
        if pane is not None and pane.approval.has_keyboard:
            place += 1
        return next((chat for chat in chats[place:] + chats[:place] if chat.is_asking), None)

    async def _show_asking(self, chat: Conversation) -> None:
        if (pane := await self._bring(chat)) is not None:
            pane.approval.take_focus()

    async def _show_tools(self, chat: Conversation) -> None:
        if (pane := await self._bring(chat)) is not None:
            pane.sending.tools_wanted.emit()

    def _chat_of_keyboard(self) -> Conversation | None:
        own = next(
            (chat for chat, one in self.windows.windows.items() if one.isActiveWindow()), None
        )
        return own or self._panes.active.chat

    async def _bring(self, chat: Conversation) -> ChatPane | None:
        """Show a chat where it is or in the active pane, its window in front; its pane, if it is there by then."""
        if not self.windows.bring_forward(chat):
            if not (window := self._panes.window()).isActiveWindow():
                window.raise_()
                window.activateWindow()
            await self._panes.show_chat(chat)
        return self._pane_of(chat)

    def _pane_of(self, chat: Conversation) -> ChatPane | None:
        window = self.windows.windows.get(chat)
        return window.pane if window is not None else self._panes.pane_of(chat)

    async def _show_found(self, chat: Conversation, place: FoundPlace | None) -> None:
        pane = await self._bring(chat)
        message = chat.tree.get(place.message_id) if place is not None else None
        if place is None or message is None:
            return
        if message not in chat.messages:
            self._service.versions.choose(chat, message)
        if pane is not None:
            pane.show_found(place)

    async def _show_temporary(self) -> None:
        await self._panes.show_chat(await self._service.new_chat(is_temporary=True))

    async def _show_new(self) -> None:
        await self._panes.show_chat(await self._empty_chat())

    async def _show_new_with(self, draft: str) -> None:
        chat = await self._empty_chat()
        self._service.set_draft(chat, draft)
        pane = self._panes.pane_of(chat)
        if pane is not None:  # it reads a draft only when another chat comes into it
            pane.composer.set_text(draft)
        await self._panes.show_chat(chat)

    async def _show_first(self) -> None:
        chats = self._listed()
        await self._panes.active.show_chat(chats[0] if chats else await self._service.new_chat())
        self._panes.activate(self._panes.active)

    async def _split(self) -> None:
        hidden = [chat for chat in self._listed() if self._panes.pane_of(chat) is None]
        await self._panes.split(hidden[0] if hidden else await self._service.new_chat())

    async def _empty_chat(self) -> Conversation:
        """A chat to begin with: one that nothing was done with yet, where there is one."""
        for chat in self._listed():
            is_untouched = chat.is_loaded and not chat.tree and not chat.draft
            is_usual = chat.title == NEW_CHAT_TITLE and not chat.is_temporary
            is_waiting = bool(chat.draft_attachments) or chat.queued is not None
            if is_untouched and is_usual and not is_waiting:
                return chat
        return await self._service.new_chat()

    def _listed(self) -> list[Conversation]:
        """The chats that are neither archived nor in a window of their own, the last used first."""
        return [
            chat
            for chat in self._service.chats
            if not chat.is_archived and chat not in self.windows.windows
        ]
