"""The three server scenarios: chats that overflow the pool, chats that fit, and the same one after another.

Prompts are common words in an order that seed and number of the chat give, so that no two have a beginning in common
and nothing read before can be found again. The client runs on a loop of its own in the caller's thread.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from random import Random

from engine.bench.figures import percentile
from studio.bench.plan import BenchPlan, ChatLoad
from studio.bench.stream import Ask, Reply, stream_completion
from studio.models.errors import StudioError

_WORDS = (
    "time", "people", "way", "water", "word", "day", "part", "number", "sound", "place", "year",
    "work", "name", "sentence", "man", "line", "boy", "farm", "house", "point", "world", "home",
    "hand", "page", "letter", "mother", "answer", "country", "plant", "school", "father", "tree",
    "food", "sun", "city", "earth", "eye", "story", "life", "paper", "group", "river", "car",
    "book", "music", "mark", "dog", "horse", "head", "room", "friend", "fish", "mountain", "wood",
    "song", "door", "color", "king", "town", "star", "field", "bird", "body", "family", "ship",
)  # fmt: skip


class Scenario(Enum):
    """How the chats come, and into which pool."""

    OVERFLOW = "overflow"
    FITS = "fits"
    ONE_BY_ONE = "one after another"

    def pool_tokens(self, load: ChatLoad) -> int:
        """Chats one after another are those that overflow, and so go where none of those has been."""
        return load.tight_pool_tokens if self is Scenario.OVERFLOW else load.wide_pool_tokens


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """All chats of one run, from the first question to the last answer."""

    replies: tuple[Reply, ...]
    reply_tokens: int
    wall_s: float

    @property
    def completed(self) -> int:
        return sum(reply.is_complete(self.reply_tokens) for reply in self.replies)

    @property
    def useful_tokens_s(self) -> float:
        """Tokens of the chats that were completed, per second."""
        useful = (r for r in self.replies if r.is_complete(self.reply_tokens))
        return sum(reply.completion_tokens for reply in useful) / self.wall_s

    @property
    def first_tokens_s(self) -> list[float]:
        return [reply.first_token_s for reply in self.replies if reply.token_times_s]

    @property
    def parks(self) -> int:
        """How often somebody was parked, as the streams were told."""
        return sum(note == "preempted" for reply in self.replies for _, note in reply.notes)

    def gap_ms(self, share: float) -> float:
        """The gap between two pieces of one text that `share` of all gaps do not exceed; 0 without any."""
        gaps = [end - start for reply in self.replies for start, end in reply.gaps]
        return percentile(gaps, share) * 1e3 if gaps else 0.0


def count_equal_texts(run: ScenarioRun, other: ScenarioRun) -> int:
    """Chats of two runs of the same prompts that got the same text."""
    pairs = zip(run.replies, other.replies, strict=True)
    return sum(one.text == another.text != "" for one, another in pairs)


def make_prompts(load: ChatLoad, seed: int) -> list[str]:
    """A prompt for each chat."""
    return [
        " ".join(Random(f"{seed} {chat}").choices(_WORDS, k=load.prompt_words))
        for chat in range(load.num_chats)
    ]


def run_scenario(
    url: str, load: ChatLoad, scenario: Scenario, *, seed: int, api_key: str | None = None
) -> ScenarioRun:
    """Send the chats and hear them to the end. Raises StudioError where a server refuses all of them."""
    asks = [
        Ask(prompt=prompt, reply_tokens=load.reply_tokens, api_key=api_key)
        for prompt in make_prompts(load, seed)
    ]
    gc.collect()
    gc.disable()  # a client that stops to tidy up would show as a gap
    try:
        start_s = time.perf_counter()
        replies = asyncio.run(_send(url, asks, is_together=scenario is not Scenario.ONE_BY_ONE))
        wall_s = time.perf_counter() - start_s
    finally:
        gc.enable()
    if not any(reply.token_times_s for reply in replies):
        raise StudioError(f"{scenario.value}: no chat got a token: {replies[0].error}")
    return ScenarioRun(tuple(replies), load.reply_tokens, wall_s)


def warm_up(url: str, plan: BenchPlan) -> None:
    """Have a server answer once: what it does for the first time would count against it."""
    load = replace(plan.load, num_chats=1, reply_tokens=plan.lengths.begun_tokens)
    run_scenario(url, load, Scenario.ONE_BY_ONE, seed=-1, api_key=plan.api_key)


async def _send(url: str, asks: Sequence[Ask], *, is_together: bool) -> list[Reply]:
    if is_together:
        return await asyncio.gather(*(stream_completion(url, ask) for ask in asks))
    return [await stream_completion(url, ask) for ask in asks]
