"""The models that a request may name: the one that is loaded, and those of the library. Server thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.api import EngineSnapshot, EngineState, ModelInfo
from engine.errors import ModelNotFound, ModelUnavailable
from studio.server.translate import served_model
from studio.services.model_demand import Offer, unknown_model

if TYPE_CHECKING:
    from studio.server.context import ServerContext


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """One that is loaded, or that the library has."""

    offer: Offer
    info: ModelInfo | None = None
    """What its files say; None where that was not asked for, or they are not sound."""
    window_tokens: int | None = None
    """What a request can hold; None: it is not loaded."""

    @property
    def name(self) -> str:
        return self.offer.name

    @property
    def is_loaded(self) -> bool:
        return self.window_tokens is not None


async def all_models(context: ServerContext, *, with_facts: bool = False) -> list[ListedModel]:
    """The loaded one first, always with facts; those of the others are read from their files."""
    snapshot = context.client.snapshot()
    model = snapshot.model if snapshot.state is EngineState.READY else None
    loaded = [] if model is None else [_loaded(snapshot, model)]
    path = None if model is None else model.path
    others = await _offered(context, with_facts=with_facts)
    return loaded + [each for each in others if each.offer.path != path]


async def model_called(
    context: ServerContext, name: str | None, *, with_facts: bool = False
) -> ListedModel:
    """The loaded one, if `name` means it, or one of the library.

    Raises ModelNotFound, or ModelUnavailable where nothing is loaded and nothing offered.
    """
    snapshot = context.client.snapshot()
    try:
        return _loaded(snapshot, served_model(snapshot, name))
    except (ModelNotFound, ModelUnavailable):
        offered = await _offered(context, with_facts=with_facts)
        found = [each for each in offered if name and each.offer.is_meant_by(name)]
        if name and offered and not found:
            raise unknown_model(name, tuple(each.offer for each in offered)) from None
        if not found:
            raise
        return found[0]


def _loaded(snapshot: EngineSnapshot, model: ModelInfo) -> ListedModel:
    offer = Offer(
        name=model.name, path=model.path, created_s=model.created_s, size_bytes=model.size_bytes
    )
    return ListedModel(offer=offer, info=model, window_tokens=snapshot.window_tokens)


async def _offered(context: ServerContext, *, with_facts: bool) -> list[ListedModel]:
    if context.demand is None:
        return []
    if with_facts:
        return [ListedModel(offer=offer, info=info) for offer, info in await context.demand.facts()]
    return [ListedModel(offer=offer) for offer in await context.demand.offers()]
