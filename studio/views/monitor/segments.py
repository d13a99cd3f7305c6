"""The pool and the memory of parked chats as pieces in the order of their owners, each with what it says. Pure.

GUI thread; read from the engine's snapshot. Must not import services or widgets.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from engine.api import EngineSnapshot, PoolUsage
from engine.runs import ParkUsage, RunState
from studio.views.run_sentences import Others
from studio.views.words import count, memory, tokens, tr


class Kind(Enum):
    """What a piece is, beside whose."""

    HELD = "held"
    MOVING = "moving"
    """In use, but nobody's who is in the pool: being copied, or waiting to be moved out."""
    KEPT = "kept"
    """Beginnings of earlier requests, free for the taking."""
    FREE = "free"


@dataclass(frozen=True, slots=True)
class Segment:
    """`size` is in pages, or in bytes of a memory bar. Several hues: what their owners have in common."""

    kind: Kind
    size: int
    hues: tuple[int, ...] = ()
    words: str = ""
    request_ids: tuple[str, ...] = ()


def used_pages(pool: PoolUsage) -> int:
    """Pages that requests hold now."""
    return pool.total_pages - pool.free_pages - pool.reusable_pages


def pool_segments(snapshot: EngineSnapshot, others: Others) -> tuple[Segment, ...]:
    """All pages of the pool: each owner's, shared ones with all of theirs, then what is moving, kept and free."""
    pool = snapshot.pool
    if not pool.total_pages:
        return ()
    page = pool.page_tokens
    found = []
    for one in snapshot.holdings:
        hues = tuple(others.hues.get(id_, 0) for id_ in one.request_ids)
        words = _holder_words(one.request_ids, one.pages * page, others)
        found.append(Segment(Kind.HELD, one.pages, hues, words, one.request_ids))
    held = sum(one.size for one in found)
    for kind, pages, text in (
        (Kind.MOVING, used_pages(pool) - held, tr("{tokens} are on their way in or out")),
        (Kind.KEPT, pool.reusable_pages, tr("{tokens} keep beginnings that may be used again")),
        (Kind.FREE, pool.free_pages, tr("{tokens} are free")),
    ):
        if pages > 0:
            found.append(Segment(kind, pages, words=text.format(tokens=tokens(pages * page))))
    return tuple(found)


def memory_segments(snapshot: EngineSnapshot, others: Others) -> tuple[Segment, ...]:
    """What each parked request keeps outside the pool, and what is left of the budget.

    Pages that several of them share are told with each; all are shrunk to what is used in truth.
    """
    parks, page_bytes = snapshot.parks, snapshot.pool.page_bytes
    outside = (RunState.PARKED, RunState.AWAITS_OWNER)
    kept = [run for run in snapshot.runs if run.state in outside and run.kept_pages]
    listed = sum(run.kept_pages for run in kept) * page_bytes
    shrink = min(1.0, parks.used_bytes / listed) if listed else 0.0
    found = []
    for run in kept:
        size = round(run.kept_pages * page_bytes * shrink)
        name = others.names.get(run.request_id, "")
        words = tr("{name}: {size} set aside").format(name=name, size=memory(size))
        hue = others.hues.get(run.request_id, 0)
        found.append(Segment(Kind.HELD, size, (hue,), words, (run.request_id,)))
    rest = parks.used_bytes - sum(one.size for one in found)
    if rest > 0:
        words = tr("{size} are being copied").format(size=memory(rest))
        found.append(Segment(Kind.MOVING, rest, words=words))
    if parks.budget_bytes > parks.used_bytes:
        left = parks.budget_bytes - parks.used_bytes
        found.append(Segment(Kind.FREE, left, words=tr("{size} left").format(size=memory(left))))
    return tuple(found)


def describe_pool(pool: PoolUsage) -> str:
    """The pool in a sentence."""
    if not pool.total_pages:
        return tr("There is no pool before a model is loaded")
    page = pool.page_tokens
    return tr(
        "Chats hold {used} of {total} tokens of room; {kept} more keep beginnings that may be used again"
    ).format(
        used=count(used_pages(pool) * page),
        total=count(pool.total_pages * page),
        kept=count(pool.reusable_pages * page),
    )


def park_words(parks: ParkUsage) -> str:
    """ "26 MB of 8 GB for parked chats"."""
    if parks.budget_bytes == 0:
        return tr("Parking is off: a chat that finds no room ends")
    if parks.budget_bytes < 0:
        return tr("{used} for parked chats, no limit").format(used=memory(parks.used_bytes))
    return tr("{used} of {budget} for parked chats").format(
        used=memory(parks.used_bytes), budget=memory(parks.budget_bytes)
    )


def _holder_words(ids: tuple[str, ...], held: int, others: Others) -> str:
    names = [others.spoken(id_) for id_ in ids]
    if len(names) == 1:
        return tr("{name} holds {held}").format(name=names[0], held=tokens(held))
    if len(names) == 2:
        text = tr("{first} and {second} share {held}")
        return text.format(first=names[0], second=names[1], held=tokens(held))
    text = tr("{first} and {count} more share {held}")
    return text.format(first=names[0], count=count(len(names) - 1), held=tokens(held))
