"""Loads the model that a program's request names, if the library has it and nobody is disturbed by it.

Used on the server's loop; what blocks (the library on disk) runs in a thread. A model that answers requests, the
window's chats included, is never taken away: the engine itself looks, between two steps (`LoadModel.only_if_idle`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.api import EngineState, LoadModel, LoadOptions, ModelChanged, ModelInfo
from engine.client import EngineClient
from engine.errors import EngineError, ModelError, ModelNotFound, ModelUnavailable
from studio.models.model_library import ModelEntry
from studio.services.idle_unloader import IdleUnloader
from studio.services.model_library_service import ModelLibraryService

_log = logging.getLogger(__name__)

BUSY_RETRY_S = 10.0
LOADING_RETRY_S = 2.0
_SETTLED = frozenset({EngineState.READY, EngineState.FAILED, EngineState.STOPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A model of the library that a request may name."""

    name: str
    path: Path
    created_s: int
    size_bytes: int = 0

    def is_meant_by(self, name: str) -> bool:
        """Its name, or its file's, in any case of letters."""
        names = {self.name, self.path.name, self.path.name.removesuffix(".gguf"), str(self.path)}
        return name.casefold() in {each.casefold() for each in names}


def unknown_model(name: str, offers: tuple[Offer, ...]) -> ModelNotFound:
    """For a name that none of the offers has."""
    names = ", ".join(each.name for each in offers)
    return ModelNotFound(f"there is no model {name[:200]!r} in the library; it has {names}")


class ModelDemand:
    """One for each server, whose loop it lives on."""

    def __init__(
        self,
        library: ModelLibraryService,
        options_for: Callable[[Path], LoadOptions],
        *,
        is_on: Callable[[], bool],
        usual_model: Callable[[], str],
        idle: IdleUnloader | None = None,
        longest_load_s: float = 300.0,
    ) -> None:
        """`options_for` gives the user's settings for a model; `usual_model` is meant where a request names none.

        `idle` has models leave; without it they stay.
        """
        self._library = library
        self._options_for = options_for
        self._is_on = is_on
        self._usual_model = usual_model
        self._idle = idle
        self._longest_load_s = longest_load_s
        self._loading = asyncio.Lock()
        self._infos: dict[Offer, ModelInfo | None] = {}
        """Facts of the offers; where they cannot be read, None."""

    async def offers(self) -> tuple[Offer, ...]:
        """The library as it is on disk now; nothing while loading on demand is switched off."""
        return await asyncio.to_thread(self._read_offers) if self._is_on() else ()

    async def facts(self) -> tuple[tuple[Offer, ModelInfo | None], ...]:
        """The offers, each with what its files say; None for files that are not sound."""
        return await asyncio.to_thread(self._read_facts) if self._is_on() else ()

    async def stay(
        self, client: EngineClient, seconds: float | None, *, request_id: str = ""
    ) -> bool:
        """Have the loaded model leave so long after a request, see `IdleUnloader.stay`; whether that is done.

        Not where nothing would bring it back: it is not of the library, or loading on demand is switched off.
        """
        model = client.snapshot().model
        if self._idle is None or model is None:
            return False
        if seconds is not None and all(offer.path != model.path for offer in await self.offers()):
            return False
        self._idle.stay(seconds, request_id=request_id)
        return True

    def left_s(self) -> float | None:
        """Seconds until the loaded model leaves, if nobody uses it; None: it stays."""
        return None if self._idle is None else self._idle.left_s()

    async def bring(self, client: EngineClient, name: str | None, refusal: EngineError) -> None:
        """Have the model that `name` means loaded; returns when it is ready.

        Raises `refusal`, the reason why it cannot be served as things are, where nothing can be done about it;
        ModelNotFound for a name that the library does not have; ModelUnavailable, with a time to ask again, where
        another model is in use or it takes too long; and the ModelError of a model that cannot be loaded.
        """
        wanted = name or self._usual_model()
        offers = await self.offers()
        offer = next((each for each in offers if each.is_meant_by(wanted)), None)
        if offer is None and name and offers:
            raise unknown_model(name, offers)
        if offer is None:
            raise refusal
        try:
            async with asyncio.timeout(self._longest_load_s), self._loading:
                await self._load(client, offer)
        except TimeoutError:
            raise ModelUnavailable(
                f"{offer.name} has not been ready within {self._longest_load_s:g} s; ask again in a moment",
                retry_after_s=LOADING_RETRY_S,
            ) from None

    async def _load(self, client: EngineClient, offer: Offer) -> None:
        news: asyncio.Queue[ModelChanged] = asyncio.Queue()
        disconnect = client.on_model_changed(news.put_nowait)
        try:
            while client.snapshot().state is EngineState.LOADING:  # somebody else's load
                await news.get()
            model = client.snapshot().model
            if client.snapshot().state is EngineState.READY and model and model.path == offer.path:
                return
            options = await asyncio.to_thread(self._options_for, offer.path)
            _log.info("a request names %s: it is being loaded", offer.name)
            client.control(
                LoadModel(path=offer.path, name=offer.name, options=options, only_if_idle=True)
            )
            await _until_ready(news, offer)
        finally:
            disconnect()

    def _read_offers(self) -> tuple[Offer, ...]:
        return tuple(map(_offer, self._entries()))

    def _read_facts(self) -> tuple[tuple[Offer, ModelInfo | None], ...]:
        pairs = tuple((_offer(entry), entry) for entry in self._entries())
        self._infos = {
            offer: self._infos[offer] if offer in self._infos else self._inspect(entry)
            for offer, entry in pairs
        }
        return tuple(self._infos.items())

    def _entries(self) -> tuple[ModelEntry, ...]:
        return tuple(entry for entry in self._library.entries() if not entry.is_missing)

    def _inspect(self, entry: ModelEntry) -> ModelInfo | None:
        try:
            return self._library.inspect(entry)
        except ModelError as error:
            _log.info("%s: %s", entry.name, error)
            return None


def _offer(entry: ModelEntry) -> Offer:
    return Offer(
        name=entry.name,
        path=entry.path,
        created_s=_modified_s(entry),
        size_bytes=entry.size_bytes,
    )


async def _until_ready(news: asyncio.Queue[ModelChanged], offer: Offer) -> None:
    while True:
        event = await news.get()
        if event.state not in _SETTLED:
            continue
        if event.error is not None:
            raise event.error
        if event.model is not None and event.model.path == offer.path:
            return
        other = event.model.name if event.model is not None else "another model"
        raise ModelUnavailable(
            f"{offer.name} is not loaded, and {other} answers other requests just now; ask again when they have ended",
            retry_after_s=BUSY_RETRY_S,
        )


def _modified_s(entry: ModelEntry) -> int:
    try:
        return int(entry.path.stat().st_mtime)
    except OSError:
        return 0
