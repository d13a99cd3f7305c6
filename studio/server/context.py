"""What the routes are given, and the one way in which they answer a generation. Server thread."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from engine.api import ModelInfo, Priority, Prompt, Request
from engine.client import EngineClient
from engine.errors import EngineError, ModelNotFound, ModelUnavailable
from studio.server.auth import caller_of
from studio.server.body import read_body
from studio.server.connection import ConnectionLimits
from studio.server.errors import ApiError, ClientLeft
from studio.server.generation import Asking, gather, whole_reply
from studio.server.json_text import JsonAnswer
from studio.server.live_requests import LiveRequests
from studio.server.park_state import can_park
from studio.server.priority_field import priority_of
from studio.server.protocol import GenerationFields
from studio.server.reply_parts import ReplyParts
from studio.server.reply_shape import ReplyEnd, ReplyShape
from studio.server.request_rows import note_of
from studio.server.share_gate import ShareGate
from studio.server.sse import EventStream, StreamTimings
from studio.server.translate import served_model
from studio.server.wire import WireModel
from studio.services.model_demand import ModelDemand

Wire = TypeVar("Wire", bound=WireModel)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """How the client wants to be answered."""

    streams: bool
    choices_per_prompt: int = 1
    ping_interval_s: int | None = None
    """Seconds of silence in a stream until a ping; None: as the server has it, see StreamTimings."""
    priority: Priority | None = None
    """The lane that is asked for; see `priority_of`."""


def delivery_of(wire: GenerationFields) -> Delivery:
    """As the fields say that completions have in common."""
    return Delivery(
        streams=bool(wire.stream),
        choices_per_prompt=wire.n or 1,
        ping_interval_s=wire.sse_ping_interval,
        priority=wire.priority,
    )


NO_NAMES = frozenset({"default", "local-model"})
"""What programs send that must name a model and do not know which one is loaded; in any case of letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """Built once per server, on its loop."""

    client: EngineClient
    gate: ShareGate
    live: LiveRequests = field(default_factory=LiveRequests)
    timings: StreamTimings = field(default_factory=StreamTimings)
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    demand: ModelDemand | None = None
    """Loads the model that a request names; None: only what is loaded is served."""
    keeps_prompts: bool = False

    async def read(self, http: HttpRequest, wire: type[Wire]) -> Wire:
        """The request's body; a slow sender does not hold up the end of the server."""
        return await self.live.run(read_body(http, wire, self.limits), receive=None)

    async def model_for(self, http: HttpRequest, name: str | None) -> ModelInfo:
        """The model that `name` means, loaded on demand where that is allowed and disturbs nobody.

        One of NO_NAMES means the model that is loaded, as none at all does.

        Raises ModelNotFound for a name that nobody knows, ModelUnavailable while another model is in use or loading,
        ClientLeft, and what keeps a model from being loaded.
        """
        if name is not None and name.casefold() in NO_NAMES:
            name = None
        try:
            return served_model(self.client.snapshot(), name)
        except (ModelUnavailable, ModelNotFound) as error:
            if self.demand is None:
                raise
            work = self.demand.bring(self.client, name, error)
            await self.live.run(work, receive=http.receive)
        return served_model(self.client.snapshot(), name)

    async def answer(
        self,
        http: HttpRequest,
        requests: tuple[Request, ...],
        shape: ReplyShape,
        delivery: Delivery,
    ) -> Response:
        """The reply, streamed or whole; the client leaving ends the generation either way."""
        generation = self._ask(http, requests, delivery).told_as(shape)
        if delivery.streams:
            timings = self.timings
            if delivery.ping_interval_s is not None:
                timings = StreamTimings.of_ping_interval(delivery.ping_interval_s)
            return EventStream(
                self.client, generation, live=self.live, timings=timings, gate=self.gate
            )
        work = whole_reply(self.client, generation, self.gate)
        return JsonAnswer(await self._while_there(http, work))

    async def gather(
        self, http: HttpRequest, requests: tuple[Request, ...]
    ) -> tuple[list[ReplyParts], ReplyEnd]:
        """What becomes of all requests; the client leaving ends them."""
        asking = self._ask(http, requests, Delivery(streams=False))
        return await self._while_there(http, gather(self.client, asking, self.gate))

    async def keep_model(self, seconds: float | None, *, request_id: str = "") -> bool:
        """Have the model leave so long after a request, or now; whether that is done. See `ModelDemand.stay`."""
        if self.demand is None:
            return False
        return await self.demand.stay(self.client, seconds, request_id=request_id)

    async def count_tokens(self, http: HttpRequest, prompt: Prompt) -> int:
        """What the loaded model makes of a prompt. Raises RequestError, ModelUnavailable and ClientLeft."""
        count = await self.live.run(self.client.count_tokens(prompt), receive=http.receive)
        if count is None:
            raise ModelUnavailable("the model was unloaded meanwhile; ask again")
        return count

    def _ask(self, http: HttpRequest, requests: tuple[Request, ...], delivery: Delivery) -> Asking:
        """The requests in their lane, and with a row of their own."""
        caller, note = caller_of(http.scope), note_of(http.scope)
        snapshot = self.client.snapshot()
        priority = priority_of(caller, delivery.priority)
        asking = Asking(
            requests=tuple(replace(each, priority=priority) for each in requests),
            choices_per_prompt=delivery.choices_per_prompt,
            tells_parks=can_park(snapshot),
            caller=caller,
            note=note,
        )
        model = snapshot.model.name if snapshot.model is not None else ""
        note.begin(asking.requests, model=model, keeps_prompt=self.keeps_prompts)
        return asking

    async def _while_there(self, http: HttpRequest, work: Coroutine[Any, Any, T]) -> T:
        note = note_of(http.scope)
        try:
            return await self.live.run(work, receive=http.receive)
        except ClientLeft:
            note.leave()
            raise
        except (ApiError, EngineError) as error:
            note.fail(str(error))
            raise
