"""One chat on screen: its title, its messages, the field to write in. Up to four stand side by side. GUI thread.

It listens to the chat service for its own chat only and leaves the drawing to the frame ticker; a closed pane listens
no more.
"""

from __future__ import annotations

import time

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from engine.runs import Run
from studio.models.chat import NEW_CHAT_TITLE, Conversation, Message, Role
from studio.models.search_hit import FoundPlace
from studio.services.run_service import Steer
from studio.services.tools.tool_desk import Verdict
from studio.views.actions import WindowState
from studio.views.chat.approval_card import Answer, ApprovalCard
from studio.views.chat.attaching import Attaching
from studio.views.chat.chat_view import SIDE_PX, ChatView, Place, column_of
from studio.views.chat.composer import Composer
from studio.views.chat.context_meter import ContextWatch
from studio.views.chat.find_bar import FindBar
from studio.views.chat.foot_view import MessageAction
from studio.views.chat.message_actions import MessageActions
from studio.views.chat.sending import Sending
from studio.views.chat.status_strip import StatusStrip
from studio.views.context import Context
from studio.views.elided_label import ElidedLabel
from studio.views.icon_button import IconButton
from studio.views.run_sentences import is_held
from studio.views.start_view import StartView
from studio.views.status_words import title_words
from studio.views.steer_menu import may_go_first
from studio.views.words import in_sentence, tr

_PROMPT_CHARS = 24
"""Of a title in the empty field to write in: the prompt has to stay on one line in the narrowest pane."""
_LEAST_TRANSCRIPT_PX = 24
_OUT_PX = 8
"""How far the field to write in reaches out of the column of text."""


_BELOW_PX = 16
_CARD_FRAME_PX = 10


class ChatPane(QWidget):
    """Empty until `show_chat` was called."""

    close_wanted = Signal()

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("chatPane")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._context = context
        self._chats = context.services.chats
        self._models = context.services.models
        self.chat: Conversation | None = None
        self.transcript: ChatView | None = None
        self._places: dict[int, Place] = {}
        """Where the reader was in chats that were left elsewhere than at their end, by id."""
        self._actions: MessageActions | None = None
        self._header = _PaneHeader(self)
        self._header.close_button.clicked.connect(self.close_wanted)
        self.start_view = StartView(self._models, context.model_actions, self)
        self.find_bar = FindBar(context.theme, self)
        self.find_bar.closed.connect(self._on_find_closed)
        self._blank = QWidget(self)
        self._stack = QStackedWidget(self)
        self._stack.setMinimumHeight(_LEAST_TRANSCRIPT_PX)
        self._stack.addWidget(self._blank)
        self._stack.addWidget(self.start_view)
        self.composer = Composer(self)
        self.composer.edited.connect(self._on_edited)
        self.composer.stopped.connect(self.stop)
        self.attaching = Attaching(context, self.composer, self)
        self.sending = Sending(context, self.composer, self)
        self.context_watch = ContextWatch(context, self.composer, self)
        self.sending.counted.connect(self.context_watch.meter.show_use)
        self.strip = StatusStrip(context.theme, self)
        self.strip.steer_wanted.connect(self.steer)
        self.approval = ApprovalCard(context.theme, self)
        self.approval.answered.connect(self._on_answered)
        self._composer_frame = QVBoxLayout()
        self._lay_out()
        self.setFocusProxy(self.composer)
        context.watch.ticked.connect(self._show_strip)
        self._disconnects = (
            self._chats.chat_changed.connect(self._on_chat_changed),
            self._chats.message_added.connect(self._on_message_added),
            self._chats.path_changed.connect(self._on_path_changed),
            self._chats.message_changed.connect(self._on_message_changed),
            self._models.changed.connect(self._on_models_changed),
            self._models.library_changed.connect(self._on_models_changed),
            self._models.fetch_changed.connect(self._on_models_changed),
        )

    def _lay_out(self) -> None:
        self._composer_frame.setSpacing(0)
        self._composer_frame.addWidget(self.strip)
        self._composer_frame.addWidget(self.approval)
        self._composer_frame.addWidget(self.sending.overflow)
        self._composer_frame.addWidget(self.sending.queued)
        self._composer_frame.addWidget(self.composer)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._header)
        layout.addWidget(self.find_bar)
        layout.addWidget(self._stack, 1)
        layout.addLayout(self._composer_frame)

    async def show_chat(self, chat: Conversation) -> None:
        """Put a chat into the pane, reading its messages first if they are not there yet."""
        if chat is not self.chat:
            self.turn_to(chat)
            await self.read_chat()

    def turn_to(self, chat: Conversation) -> None:
        """Be another chat's pane from now on, whose draft is typed here; `read_chat` then shows its messages."""
        if self.chat is not None:
            self._remember_place(self.chat)
            self._chats.set_visible(self.chat, is_visible=False)
        elif typed_before := self.composer.text():
            self._chats.set_draft(chat, chat.draft + typed_before)
        self.chat = chat
        self._chats.set_visible(chat, is_visible=True)
        self.composer.set_text(chat.draft)
        self.attaching.show_chat(chat)
        self.sending.show_chat(chat)
        self._on_chat_changed(chat)
        self._drop_transcript()

    async def read_chat(self) -> None:
        """Show the messages of the pane's chat, once they are there."""
        chat = self.chat
        if chat is None:
            return
        await self._chats.open_chat(chat.chat_id)
        if self.chat is chat:
            self.attaching.show_chat(chat)  # its files are there now
            self.context_watch.show_chat(chat)
            self._show_strip()
        if self.chat is chat and self.transcript is None:
            self._show_messages()

    def close_pane(self) -> None:
        """Listen no more and let the widget go."""
        for disconnect in self._disconnects:
            disconnect()
        self._context.watch.ticked.disconnect(self._show_strip)
        self.attaching.close()
        self.context_watch.close()
        self.sending.show_chat(None)
        if self.chat is not None:
            self._chats.set_visible(self.chat, is_visible=False)
            self.chat = None
        self._context.frames.unmark(self.start_view.refresh)
        self._drop_transcript()
        self.hide()
        self.deleteLater()

    def stop(self) -> None:
        """End the reply of this pane's chat."""
        if self.chat is not None:
            self._chats.stop(self.chat)

    def open_find(self) -> None:
        """Open the bar that finds words in this pane's chat."""
        if self.chat is not None and self.transcript is not None:
            self.find_bar.open_for(self.chat, self.transcript)

    def show_found(self, place: FoundPlace) -> None:
        """Go to a message of this pane's chat, and mark what was looked for."""
        if self.chat is not None and self.transcript is not None:
            self.transcript.show_message(place.message_id)
            self.find_bar.open_at(self.chat, self.transcript, place)

    def steer(self, steer: Steer) -> None:
        """Do something about the reply of this pane's chat."""
        if self.chat is not None:
            self._context.services.runs.steer_chat(self.chat, steer)

    def can_do(self, action: MessageAction) -> bool:
        """Whether something can be done with the last message of this pane's chat."""
        return self._actions is not None and self._actions.can_do_to_last(action)

    def do(self, action: MessageAction) -> None:
        """Do it, where that can be."""
        if self._actions is not None:
            self._actions.do_to_last(action)

    def state(self) -> WindowState:
        """What the commands on this pane's chat depend on."""
        chat, run, others = self.chat, self.run, self._context.watch.others
        return WindowState(
            has_chat=chat is not None,
            can_export=chat is not None and chat.last_status is not None,
            is_running=chat is not None and chat.running_message is not None,
            can_answer_again=self.can_do(MessageAction.REGENERATE),
            can_continue=self.can_do(MessageAction.CONTINUE),
            is_waiting=run is not None and may_go_first(run),
            can_park=run is not None and others.can_park and not is_held(run),
            is_pinned=run is not None and run.is_pinned,
            is_asking=chat is not None and chat.is_asking,
        )

    @property
    def run(self) -> Run | None:
        """Where the reply of this pane's chat stands in the engine."""
        return self._context.watch.run_of(self.chat) if self.chat is not None else None

    def toggle_pin(self) -> None:
        """Never park the reply of this pane's chat, or let go of that."""
        if (run := self.run) is not None:
            self.steer(Steer.UNPIN if run.is_pinned else Steer.PIN)

    def set_header_visible(self, *, is_visible: bool) -> None:
        """The title stands in the pane only where there are several."""
        self._header.setVisible(is_visible)

    def set_active(self, *, is_active: bool) -> None:
        """Mark the pane that commands go to."""
        self._header.set_active(is_active=is_active)

    def owns(self, widget: QObject | None) -> bool:
        """Whether a widget lies in this pane."""
        while widget is not None and widget is not self:
            widget = widget.parent()
        return widget is self

    def resizeEvent(self, event: QResizeEvent) -> None:
        left, width = column_of(self.width())
        right = self.width() - left - width
        self._composer_frame.setContentsMargins(left - _OUT_PX, 0, right - _OUT_PX, _BELOW_PX)
        self.composer.set_room(self.height())
        self._bound_cards()
        super().resizeEvent(event)

    def _bound_cards(self) -> None:
        """What asks above the composer gets the room that is left, and the messages a little of it."""
        others = (self._header, self.find_bar, self.strip, self.sending.queued, self.composer)
        taken_px = sum(one.sizeHint().height() for one in others if not one.isHidden())
        left_px = self.height() - taken_px - _LEAST_TRANSCRIPT_PX - _BELOW_PX - _CARD_FRAME_PX
        self.approval.area.set_most_px(left_px)
        self.sending.overflow.area.set_most_px(left_px)

    def _show_messages(self) -> None:
        chat = self.chat
        if chat is None or not chat.messages:
            self.start_view.is_temporary = chat is not None and chat.is_temporary
            self.start_view.refresh()
            self._stack.setCurrentWidget(self.start_view)
            return
        self.transcript = ChatView(chat, self._context.kit, self._context.frames, self)
        self._actions = MessageActions(
            chat,
            self.transcript,
            self._context,
            show_chat=lambda made: self._context.tasks.start(self.show_chat(made)),
            may_ask=self.sending.may_ask,
        )
        self._stack.addWidget(self.transcript)
        self._stack.setCurrentWidget(self.transcript)
        if (place := self._places.pop(chat.chat_id, None)) is not None:
            self.transcript.go_to(place)

    def _remember_place(self, chat: Conversation) -> None:
        if self.transcript is not None and (place := self.transcript.place) is not None:
            self._places[chat.chat_id] = place

    def _drop_transcript(self) -> None:
        old, self.transcript, self._actions = self.transcript, None, None
        self._stack.setCurrentWidget(self._blank)
        if old is not None:
            self.find_bar.show_in(None, None)
            old.close_view()
            self._stack.removeWidget(old)
            old.deleteLater()

    def _on_find_closed(self) -> None:
        self.composer.setFocus()

    def _on_chat_changed(self, chat: Conversation) -> None:
        if chat is self.chat:
            self._header.set_title(title_words(chat))
            self.composer.set_prompt(
                tr("Message {chat}").format(chat=_at_the_end(chat.title))
                if chat.title != NEW_CHAT_TITLE
                else tr("Write a message")
            )
            self.composer.set_running(is_running=chat.running_message is not None)
            self.composer.set_queue_full(is_full=chat.queued is not None)
            self.sending.refresh()
            self._show_strip()
            if self._actions is not None:
                self._actions.refresh()

    def _show_strip(self) -> None:
        chat = self.chat
        self.strip.setVisible(chat is not None and bool(chat.messages))
        self.approval.show_reply(chat.running_message if chat is not None else None)
        self._bound_cards()
        if chat is None or (reply := chat.running_message) is None:
            self.strip.show_nothing()
            return
        self.strip.show_reply(reply, self.run, self._context.watch.others, time.time())

    def _on_answered(self, call_id: str, answer: Answer, word: str) -> None:
        """The user's word on a call of a tool."""
        chat, desk = self.chat, self._chats.desk
        if chat is not None and desk is not None and (reply := chat.running_message) is not None:
            desk.answer(chat, reply, call_id, Verdict(answer.value), word=word)
            if not reply.is_asking:
                self.composer.setFocus()

    def _on_message_added(self, message: Message) -> None:
        if self.chat is None or message.chat_id != self.chat.chat_id:
            return
        if self.transcript is None:
            self._show_messages()
        else:
            self.transcript.sync()
        if message.role is Role.USER and self.transcript is not None:
            self.transcript.scroll_to_end()

    def _on_path_changed(self, chat: Conversation) -> None:
        """Another version is shown, or a message less."""
        if chat is not self.chat:
            return
        if self.transcript is None or not chat.messages:
            self._drop_transcript()
            self._show_messages()
        else:
            self.transcript.sync()
            self.find_bar.search()
        if self._actions is not None:
            self._actions.refresh()

    def _on_message_changed(self, message: Message) -> None:
        is_ours = self.chat is not None and message.chat_id == self.chat.chat_id
        if is_ours and self.transcript is not None:
            self.transcript.mark_changed(message.message_id)

    def _on_models_changed(self) -> None:
        if self._stack.currentWidget() is self.start_view:
            self._context.frames.mark(self.start_view.refresh)

    def _on_edited(self, text: str) -> None:
        if self.chat is not None:
            self._chats.set_draft(self.chat, text)


def _at_the_end(title: str) -> str:
    """A title in the field's words. Marks that keep it apart would make the line higher; one keeps its end there."""
    return in_sentence(title, _PROMPT_CHARS).replace("\u2068", "").replace("\u2069", "\u200f")


class _PaneHeader(QWidget):
    """The chat's title and a button that closes the pane."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("paneHeader")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._title = ElidedLabel(self, Qt.TextElideMode.ElideMiddle)  # its end tells columns apart
        self._title.setObjectName("paneTitle")
        self.close_button = IconButton("close", tr("Close this pane"), self)
        self.close_button.setObjectName("small")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(SIDE_PX, 6, 12, 6)
        layout.addWidget(self._title, 1)
        layout.addWidget(self.close_button)

    def set_title(self, title: str) -> None:
        self._title.set_text(title)

    def set_active(self, *, is_active: bool) -> None:
        if self._title.property("active") != is_active:
            self._title.setProperty("active", is_active)
            self._title.style().unpolish(self._title)
            self._title.style().polish(self._title)
