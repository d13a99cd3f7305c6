"""Attaches files to drafts: reads them beside the window, counts their tokens, stores them. GUI thread; no Qt."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from engine.api import Text
from engine.client import EngineClient
from engine.errors import EngineError
from studio.models.attachment import Attachment
from studio.models.chat import Conversation
from studio.models.errors import AttachmentError, StudioError
from studio.models.signal import Signal
from studio.services.attachments.reader import read_attachment
from studio.services.draft_service import DraftService
from studio.services.notice_service import NoticeService, notice_for

_log = logging.getLogger(__name__)

MOST_FILES = 20
"""Of one draft."""
MANY_REFUSED = "{0} files were not attached"


class AttachmentService:
    """`reading` is how many files of each chat are being read; `changed` comes when that has changed."""

    def __init__(self, client: EngineClient, drafts: DraftService, notices: NoticeService) -> None:
        self.changed: Signal[[Conversation]] = Signal()
        self._client = client
        self._drafts = drafts
        self._notices = notices
        self._reading: dict[int, int] = {}

    def reading(self, chat: Conversation) -> int:
        """How many files are being read for the chat's draft."""
        return self._reading.get(chat.chat_id, 0)

    async def attach_files(self, chat: Conversation, paths: Sequence[Path]) -> int:
        """Read files and add them to the draft; those that cannot be are one notice. Returns how many were added."""
        free = MOST_FILES - len(chat.draft_attachments) - self.reading(chat)
        if len(paths) > free:
            self._notices.report(
                AttachmentError(
                    f"a message takes {MOST_FILES} files, and {len(paths)} more are too many; "
                    "attach fewer, or join them"
                )
            )
            return 0
        self._count(chat, len(paths))
        refusals: list[StudioError] = []
        for path in paths:
            try:
                attachment = await asyncio.to_thread(read_attachment, path)
                await self._drafts.attach(chat, await self._counted(attachment))
            except StudioError as error:
                refusals.append(error)
            finally:
                self._count(chat, -1)
        self._tell(refusals)
        return len(paths) - len(refusals)

    async def remove(self, chat: Conversation, attachment: Attachment) -> None:
        """Take a file out of the draft. Raises StoreError."""
        await self._drafts.detach(chat, attachment)

    async def count_again(self, chat: Conversation) -> None:
        """Count by the model that is loaded now; for another one the same text may cost more or less."""
        for attachment in chat.draft_attachments:
            counted = await self._counted(attachment)
            chat.draft_attachments = tuple(
                counted if one is attachment else one for one in chat.draft_attachments
            )
        self.changed.emit(chat)

    def _tell(self, refusals: Sequence[StudioError]) -> None:
        if len(refusals) == 1:
            self._notices.report(refusals[0])
        elif refusals:
            lines = "\n".join(map(str, refusals))
            _log.info("%s", lines)
            words = MANY_REFUSED.format(len(refusals))
            self._notices.show(replace(notice_for(refusals[0]), text=words, detail=lines))

    async def _counted(self, attachment: Attachment) -> Attachment:
        try:
            num_tokens = await self._client.count_tokens(Text(text=attachment.text))
        except EngineError:
            num_tokens = None
        return replace(attachment, num_tokens=num_tokens)

    def _count(self, chat: Conversation, number: int) -> None:
        self._reading[chat.chat_id] = self.reading(chat) + number
        self.changed.emit(chat)
