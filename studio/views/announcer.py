"""Tells a screen reader when a reply is parked, comes back and has ended, and what the bar of notices says: once each.

GUI thread; whatever is on screen.

Never per token: it hears of changes of status alone. Chats that take turns are parked every few seconds, so a park and
a return of the same reply are told again only after a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from studio.models.chat import Conversation, Message, MessageStatus
from studio.models.notices import Notice, NoticeList
from studio.models.run_words import reason_words
from studio.services.chat_service import ChatService
from studio.views.notices.notice_bar import notice_words
from studio.views.words import shortened, tr

QUIET_S = 30.0
"""So long the same is not told again of the same reply."""
_TITLE_CHARS = 40
_ENDED = frozenset({MessageStatus.DONE, MessageStatus.LENGTH})
_AT_WORK = frozenset({MessageStatus.READING, MessageStatus.WRITING})


class Announcer:
    """`say` gets each sentence. Listens until it is closed."""

    def __init__(
        self,
        chats: ChatService,
        say: Callable[[str], None],
        notices: NoticeList,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say = say
        self._clock = clock
        self._seen: dict[int, MessageStatus] = {}
        """How each running reply stood when it was last looked at, by message id."""
        self._told: dict[tuple[int, MessageStatus], float] = {}
        self._notices = notices
        self._noticed: tuple[Notice, ...] = ()
        """Those that were there when they were last looked at."""
        self._disconnects = (
            chats.chat_changed.connect(self._on_changed),
            notices.changed.connect(self._on_notices),
        )
        self._on_notices()

    def close(self) -> None:
        """Listen no more."""
        for disconnect in self._disconnects:
            disconnect()

    def _on_notices(self) -> None:
        before, self._noticed = self._noticed, self._notices.notices
        counting = {notice.code for notice in before if notice.is_progress}
        for notice in self._noticed:
            goes_on = notice.is_progress and notice.code in counting
            if notice not in before and not goes_on:
                self._say(notice_words(notice))

    def _on_changed(self, chat: Conversation) -> None:
        reply = chat.messages[-1] if chat.messages else None
        if reply is None:
            return
        before, now = self._seen.get(reply.message_id), reply.status
        if now.is_alive:
            self._seen[reply.message_id] = now
        elif before is not None:
            self._forget(reply)
        if before is None or before is now:
            return
        text = self._words(reply, before)
        if text and (not now.is_alive or self._is_due(reply)):
            self._say(text.format(title=shortened(chat.title, _TITLE_CHARS)))

    def _words(self, reply: Message, before: MessageStatus) -> str:
        status = reply.status
        if status is MessageStatus.PARKED:
            park = reply.park
            why = tr(reason_words(park.reason)) if park is not None else tr("Parked")
            return "{title}: " + why
        if status is MessageStatus.TOOLS and reply.is_asking:
            return tr("{title} waits for your answer")
        if before is MessageStatus.PARKED and status in _AT_WORK:
            return tr("{title} goes on")
        if status in _ENDED:
            return tr("{title} has finished")
        if status is MessageStatus.FAILED:
            return tr("{title} has failed")
        if status is MessageStatus.INTERRUPTED:
            return tr("{title} was interrupted")
        return ""

    def _is_due(self, reply: Message) -> bool:
        """Whether it is long enough since the same was told; a return counts as of one kind, whatever it does first."""
        status = reply.status if reply.status is MessageStatus.PARKED else MessageStatus.WRITING
        key, now_s = (reply.message_id, status), self._clock()
        if now_s - self._told.get(key, -QUIET_S) < QUIET_S:
            return False
        self._told[key] = now_s
        return True

    def _forget(self, reply: Message) -> None:
        del self._seen[reply.message_id]
        for key in [key for key in self._told if key[0] == reply.message_id]:
            del self._told[key]
