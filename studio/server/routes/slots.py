"""GET /slots and GET /props: seats and abilities of the server, in the form that tools for llama.cpp read.

Server thread. A parked request is listed too, though its seat is somebody else's: there may be more entries than seats.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest

from engine.api import EngineSnapshot, ShowTemplate, TextAnswer
from engine.options import LoadOptions
from engine.runs import Run
from studio import __version__
from studio.server.context import ServerContext
from studio.server.framing import Json
from studio.server.json_text import JsonAnswer
from studio.server.park_state import (
    budget_mib,
    can_park,
    is_in_or_out,
    is_in_transfer,
    is_preempted,
)
from studio.server.translate import served_model

_IDLE: Json = {
    "is_processing": False,
    "is_preempted": False,
    "is_transferring": False,
    "n_preempt": 0,
    "n_recompute": 0,
}


def slots_router(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/slots")
    async def slots() -> JsonAnswer:
        return JsonAnswer(_slots(context.client.snapshot()))

    @router.get("/props")
    async def props(http: HttpRequest) -> JsonAnswer:
        snapshot = context.client.snapshot()
        served_model(snapshot, None)
        question = context.client.read_text(ShowTemplate())
        answer = await context.live.run(question, receive=http.receive)
        return JsonAnswer({**_props(snapshot), **_texts(answer)})

    return router


def _slots(snapshot: EngineSnapshot) -> list[Json]:
    """One entry for each request that is in or parked, and one for each seat left."""
    served_model(snapshot, None)
    seats = _options(snapshot).parallel
    runs = [run for run in snapshot.runs if is_in_or_out(run)]
    num_seated = sum(not is_preempted(run) for run in runs)
    entries = [_slot(run) for run in runs] + [_IDLE] * (seats - num_seated)
    return [
        {"id": number, "n_ctx": snapshot.window_tokens, **entry}
        for number, entry in enumerate(entries)
    ]


def _slot(run: Run) -> Json:
    return {
        "id_task": run.request_id,
        "is_processing": True,
        "is_preempted": is_preempted(run),
        "is_transferring": is_in_transfer(run),
        "n_preempt": run.num_parks,
        "n_recompute": run.num_recomputes,
        "n_prompt_tokens": run.prompt_tokens,
        "n_decoded": run.completion_tokens,
        "n_held": run.held_tokens,
        "state": run.state.value,
    }


def _props(snapshot: EngineSnapshot) -> Json:
    model, options = served_model(snapshot, None), _options(snapshot)
    return {
        "default_generation_settings": {"n_ctx": snapshot.window_tokens},
        "total_slots": options.parallel,
        "model_alias": model.name,
        "model_path": str(model.path),
        "modalities": {"vision": False, "audio": False},
        "build_info": f"layby-{__version__}",
        "kernels": snapshot.kernels,
        "kv_type": options.kv_type.value,
        "kv_bytes_per_token": snapshot.pool.page_bytes // max(1, snapshot.pool.page_tokens),
        "exact_concurrency": not snapshot.inexact_ops,
        "inexact_ops": list(snapshot.inexact_ops),
        "preempt": {
            "enabled": can_park(snapshot),
            "ram_mib": budget_mib(snapshot),
            "async": snapshot.parks.is_async,
            "notices": True,
            "recurrent": False,
            "granularity": options.test_preempt_granularity or snapshot.pool.page_tokens,
            "policy": options.preempt_policy,
        },
    }


def _texts(answer: TextAnswer) -> Json:
    special = dict(answer.special_tokens)
    return {
        "chat_template": answer.text,
        "bos_token": special.get("bos_token", ""),
        "eos_token": special.get("eos_token", ""),
    }


def _options(snapshot: EngineSnapshot) -> LoadOptions:
    return snapshot.options or LoadOptions()
