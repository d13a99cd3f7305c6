"""Lets interrupted replies go on whose state is on disk, as soon as a model is ready. GUI thread, asyncio, no Qt.

They go on by themselves: nobody had stopped them, they had only lost the model under them. A state that no reply waits
for any more is deleted.
"""

from __future__ import annotations

import asyncio

from engine.api import EngineState, ModelChanged
from engine.client import EngineClient
from engine.runs import ForgetSaved
from studio.models.chat import Conversation, ids_of_request
from studio.models.errors import StoreError
from studio.services.chat_service import ChatService
from studio.services.notice_service import NoticeService


class ComebackService:
    """Listens until it is closed."""

    def __init__(self, client: EngineClient, chats: ChatService, notices: NoticeService) -> None:
        self._client = client
        self._chats = chats
        self._notices = notices
        self._tasks: set[asyncio.Task[None]] = set()
        self._disconnects = (
            client.on_model_changed(self._on_model),
            chats.chat_removed.connect(self._on_removed),
        )

    async def close(self) -> None:
        """Listen no more."""
        for disconnect in self._disconnects:
            disconnect()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _on_model(self, event: ModelChanged) -> None:
        if event.state is not EngineState.READY:
            return
        saved_ids = self._client.snapshot().saved_ids
        if saved_ids:
            task = asyncio.get_running_loop().create_task(self._bring_back(saved_ids))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _on_removed(self, chat: Conversation) -> None:
        """What was on disk of a deleted chat goes with it."""
        saved = {one: ids_of_request(one) for one in self._client.snapshot().saved_ids}
        gone = tuple(one for one, ids in saved.items() if ids and ids[0] == chat.chat_id)
        if gone:
            self._client.control(ForgetSaved(request_ids=gone))

    async def _bring_back(self, saved_ids: tuple[str, ...]) -> None:
        unwanted = []
        for request_id in saved_ids:
            try:
                if not await self._goes_on(request_id):
                    unwanted.append(request_id)
            except StoreError as error:  # then it is kept for another time
                self._notices.report(error)
        if unwanted:
            self._client.control(ForgetSaved(request_ids=tuple(unwanted)))

    async def _goes_on(self, request_id: str) -> bool:
        """Whether the request's reply is one of ours and is being gone on with."""
        ids = ids_of_request(request_id)
        chat = next((chat for chat in self._chats.chats if ids and chat.chat_id == ids[0]), None)
        return chat is not None and await self._chats.turns.go_on(chat, request_id)
