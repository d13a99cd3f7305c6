"""Loading a model while replies run: who would be cut off, and waiting for them, parking them, or stopping them.

GUI thread, asyncio, no Qt. The loading itself is the ModelService's. Requests of programs are treated as the chats are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from engine.api import EngineState, LoadOptions
from engine.client import EngineClient
from engine.errors import EngineError
from engine.runs import RunState
from studio.models.chat import Conversation, MessageStatus, reply_request_id
from studio.models.signal import Signal
from studio.services.chat_service import ChatService
from studio.services.model_service import ModelService
from studio.services.run_service import RunService, Steer
from studio.services.settings_service import SettingsService

LOADED_WITH = {
    "engine.ctx_size": "pool_tokens",
    "engine.kv_type": "kv_type",
    "engine.parallel": "parallel",
    "engine.batch_size": "batch_tokens",
    "engine.threads": "threads",
    "engine.cpu_variant": "cpu_variant",
    "engine.device": "device",
    "engine.seed": "seed",
    "engine.context_shift": "context_shift",
    "park.folder": "preempt_disk",
    "park.is_async": "preempt_async",
}
"""Settings that count when a model is loaded, and the options that they become."""


class ReloadChoice(Enum):
    """What becomes of those who run."""

    WAIT = "wait"
    """Load once all have ended by themselves."""
    PARK = "park"
    """Load at once: with the same model all go on afterwards, with another their text so far is kept."""
    STOP = "stop"
    """End them, keeping their text, and load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is to be loaded: a path or a name in the library, None for nothing at all; options None: the settings'."""

    name: str | None
    options: LoadOptions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    """A request that runs or waits."""

    request_id: str
    name: str
    is_chat: bool
    is_parked: bool
    is_temporary: bool = False
    """A chat of which nothing is kept."""


class ReloadService:
    """`changed` is emitted when somebody has come or gone, or a wait has begun or ended."""

    def __init__(
        self,
        client: EngineClient,
        chats: ChatService,
        runs: RunService,
        *,
        models: ModelService,
        settings: SettingsService,
    ) -> None:
        self.changed: Signal[[]] = Signal()
        self.waits_for: Target | None = None
        """What is loaded once nobody runs any more."""
        self._client = client
        self._chats = chats
        self._runs = runs
        self._models = models
        self._news = asyncio.Event()
        self._disconnects = (
            client.on_move(lambda _move: self._tell()),
            chats.chat_changed.connect(self._on_chat),
            chats.chat_removed.connect(self._on_chat),
            models.changed.connect(self._tell),
            settings.changed.connect(lambda _settings: self._tell()),
            models.load_settings.changed.connect(lambda _model: self._tell()),
        )

    def close(self) -> None:
        """Listen no more; a wait that lasts is given up."""
        self.cancel()
        for disconnect in self._disconnects:
            disconnect()

    def affected(self) -> tuple[Affected, ...]:
        """Everybody who would be cut off by a load now, chats before programs' requests.

        Not a chat that waits for its user: it is not writing, and goes on with whatever model there is then.
        """
        runs = {
            run.request_id: run
            for run in self._client.snapshot().runs
            if run.state is not RunState.AWAITS_OWNER
        }
        chats = {
            reply_request_id(reply): chat
            for chat in self._chats.chats
            if (reply := chat.running_message) is not None
            and reply.status is not MessageStatus.TOOLS
        }
        found = []
        for request_id in (*chats, *(one for one in runs if one not in chats)):
            run = runs.get(request_id)
            is_parked = run is not None and run.state is RunState.PARKED
            name = self._runs.name(request_id)
            found.append(
                Affected(
                    request_id=request_id,
                    name=name,
                    is_chat=request_id in chats,
                    is_parked=is_parked,
                    is_temporary=request_id in chats and chats[request_id].is_temporary,
                )
            )
        return tuple(found)

    def is_same_model(self, target: Target) -> bool:
        """Whether the target is the model that is loaded: then replies can go on after it."""
        model = self._models.model
        if model is None or target.name is None or self._models.state is not EngineState.READY:
            return False
        return target.name in (model.name, str(model.path))

    def again(self) -> Target | None:
        """The model that is loaded, with what the settings say now; None where there is none."""
        model = self._models.model
        if model is None or self._models.state is not EngineState.READY:
            return None
        return Target(name=str(model.path))

    def pending(self) -> tuple[str, ...]:
        """Keys of the settings that would change with the model being loaded again."""
        options, model = self._client.snapshot().options, self._models.model
        if self._models.state is not EngineState.READY or options is None or model is None:
            return ()
        try:
            wanted = self._models.load_settings.options_for(model.path)
        except EngineError:  # told when it is tried
            return ()
        return changed_keys(wanted, options)

    async def load(self, target: Target, choice: ReloadChoice) -> bool:
        """Do it; True once the model is ready (or gone, if that was asked).

        False if it cannot be loaded, or a wait was given up, by `cancel` or a later `load`.
        """
        self.cancel()
        if choice is ReloadChoice.WAIT and not await self._wait(target):
            return False
        carries_on = choice is ReloadChoice.PARK and self.is_same_model(target)
        if choice is ReloadChoice.STOP:
            for one in self.affected():
                self._runs.steer(one.request_id, Steer.STOP)
        if target.name is None:
            await self._models.unload()
            return True
        return await self._models.load(target.name, target.options, carries_on=carries_on)

    def cancel(self) -> None:
        """Give up waiting; what is loaded stays."""
        if self.waits_for is not None:
            self.waits_for = None
            self._tell()

    async def _wait(self, target: Target) -> bool:
        with self._waiting(target):
            while self.waits_for is target and self.affected():
                self._news.clear()
                await self._news.wait()
            return self.waits_for is target

    @contextmanager
    def _waiting(self, target: Target) -> Iterator[None]:
        self.waits_for = target
        self._tell()
        try:
            yield
        finally:
            if self.waits_for is target:
                self.cancel()

    def _on_chat(self, _chat: Conversation) -> None:
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self.changed.emit()


def changed_keys(wanted: LoadOptions, options: LoadOptions) -> tuple[str, ...]:
    """Settings that say something else than a model was loaded with.

    That copies are made in the background cannot be told where they never are: then `options` say no.
    """
    return tuple(
        key
        for key, name in LOADED_WITH.items()
        if getattr(wanted, name) != getattr(options, name)
        and not (name == "preempt_async" and wanted.preempt_async)
    )
