"""Short ways to runs as an engine's snapshot lists them: every argument has a default, and what matters is named."""

from __future__ import annotations

from engine.api import Origin, Priority
from engine.runs import Holder, Run, RunState, WaitKind, WaitReason


def make_run(
    request_id: str,
    state: RunState = RunState.WRITING,
    *,
    held_tokens: int = 640,
    prompt_tokens: int = 300,
    computed_tokens: int = 0,
    wait: WaitReason | None = None,
    expected_wait_s: tuple[float, float] | None = None,
    is_pinned: bool = False,
    is_called: bool = False,
    num_parks: int = 0,
) -> Run:
    """A chat's run unless its id says otherwise."""
    return Run(
        request_id=request_id,
        origin=Origin.GUI if request_id.startswith("chat-") else Origin.API,
        priority=Priority.NORMAL,
        state=state,
        prompt_tokens=prompt_tokens,
        computed_tokens=computed_tokens,
        held_tokens=held_tokens,
        completion_tokens=held_tokens - prompt_tokens,
        is_pinned=is_pinned,
        num_parks=num_parks,
        num_recomputes=0,
        waited_s=0.0,
        wait=wait,
        expected_wait_s=expected_wait_s,
        is_called=is_called,
    )


def make_wait(
    kind: WaitKind = WaitKind.NO_ROOM,
    *,
    place: int = 1,
    ahead: tuple[str, ...] = (),
    pages_needed: int = 40,
    holders: tuple[tuple[str, int], ...] = (),
) -> WaitReason:
    """Why a request waits; `holders` are ids with the tokens they hold, in pages of 32."""
    return WaitReason(
        kind=kind,
        place=max(place, len(ahead) + 1),
        ahead_ids=ahead,
        pages_needed=pages_needed,
        pages_spare=3,
        holders=tuple(
            Holder(request_id=request_id, held_tokens=held, pages=-(-held // 32))
            for request_id, held in holders
        ),
    )
