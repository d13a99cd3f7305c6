"""The acceptance of parking over HTTP: loads that overflow the pool of a real server, and what came of them.

A variant is a way to start the server and the streams sent to it together. The solo run of each reply, by which its
bytes are judged, is made once on a server of its own and shared by all variants.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field

import httpx

from fakes.serving import serving
from fakes.streams import Choice, Heard, body_of, listen

Body = dict[str, object]

_POLLS = 2000
"""So often a server that should be at rest is asked, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Streams that are sent together."""

    num_streams: int = 4
    sentences: int = 33
    """Of each prompt, some 10 tokens each."""
    tokens: int = 700
    """Exactly so many are generated for each reply."""
    sampling: Mapping[str, object] = field(default_factory=dict)
    """Temperature 0 if nothing is given; reply i of a request has the seed plus i."""
    num_pairs: int = 0
    """So many of the requests, the first ones, ask for two replies."""
    leaving_seed: int | None = None
    """About half of the clients hang up, each at a moment drawn with this seed."""

    def bodies(self) -> list[Body]:
        """The requests, each with a prompt of its own."""
        return [
            body_of(
                _story(index, self.sentences),
                max_tokens=self.tokens,
                n=2 if index < self.num_pairs else 1,
                logprobs=0,  # they differ before a text does
                **self.sampling,
            )
            for index in range(self.num_streams)
        ]

    def moments_to_leave(self) -> list[Callable[[Heard], bool]]:
        """For each client: never, or after so many lines, or at its so-manieth comment, in line or parked."""
        dice = random.Random(self.leaving_seed)

        def moment() -> Callable[[Heard], bool]:
            kind = dice.choice(("stays", "lines", "comments"))
            lines, comments = dice.randint(1, self.tokens), dice.randint(1, 3)
            if self.leaving_seed is None or kind == "stays":
                return lambda _: False
            if kind == "lines":
                return lambda heard: len(heard.lines) >= lines
            return lambda heard: sum(line.startswith(":") for line in heard.lines) >= comments

        return [moment() for _ in range(self.num_streams)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One row of the matrix."""

    name: str
    load: Load = Load()
    pool_tokens: int = 2048
    seats: int = 4
    cpu_variant: str = "native"
    flags: tuple[str, ...] = ()
    shifts: bool = False
    """Replies go on beyond the window, which is the pool."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """Of `layby serve`."""
        shift = ("--context-shift",) if self.shifts else ()
        size = ("-c", str(self.pool_tokens), "-np", str(self.seats))
        return ("-m", "smollm2-135m", *size, "--cpu-variant", self.cpu_variant, *shift, *self.flags)

    @property
    def alone(self) -> tuple[str, ...]:
        """Arguments of the server for solo runs. A shift depends on the window: it is the same."""
        pool_tokens = self.pool_tokens if self.shifts else 4096
        return Variant(
            name="alone",
            pool_tokens=pool_tokens,
            cpu_variant=self.cpu_variant,
            shifts=self.shifts,
        ).arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a variant."""

    variant: Variant
    heard: Sequence[Heard]
    """In the order of the requests."""
    took_s: float
    figures: Mapping[str, int]
    """Of /metrics, once all streams had ended."""

    @property
    def stayed(self) -> list[Heard]:
        """The streams of those who did not hang up."""
        return [heard for heard in self.heard if not heard.has_left]

    @property
    def most_silent(self) -> Heard:
        return max(self.heard, key=lambda heard: heard.longest_silence_s)


def run(variant: Variant) -> Outcome:
    """Serve, send all streams at once, hear them to their ends, and wait until the server is at rest."""
    with serving(*variant.arguments) as address:
        start_s = time.monotonic()
        with ThreadPoolExecutor(variant.load.num_streams) as threads:
            calls = [
                threads.submit(listen, address, body, leaves=leaves)
                for body, leaves in zip(
                    variant.load.bodies(), variant.load.moments_to_leave(), strict=True
                )
            ]
        heard = [call.result() for call in calls]
        took_s = time.monotonic() - start_s
        await_rest(address)
        return Outcome(variant=variant, heard=heard, took_s=took_s, figures=figures_of(address))


def await_rest(address: str) -> None:
    """Until no request is in flight. Raises AssertionError if that does not come to pass."""
    for _ in range(_POLLS):
        runs = httpx.get(f"{address}/v1/runs").json()["data"]
        if not runs:
            return
    raise AssertionError(f"still in flight: {runs}")


def figures_of(address: str) -> dict[str, int]:
    """What /metrics says, by name without prefix."""
    text = httpx.get(f"{address}/metrics").text
    found = re.findall(r"^layby:(\S+) (\S+)$", text, re.MULTILINE)
    return {name: int(float(value)) for name, value in found}


class Solos:
    """What each reply is alone: asked for one by one of a server that has room for all, once."""

    def __init__(self) -> None:
        self._servers = ExitStack()
        self._addresses: dict[tuple[str, ...], str] = {}
        self._known: dict[tuple[tuple[str, ...], str], Choice] = {}

    def close(self) -> None:
        self._servers.close()

    def replies(self, outcome: Outcome) -> list[tuple[Choice, Choice]]:
        """Each reply whose client stayed, with its solo run."""
        variant = outcome.variant
        return [
            (heard.choices[index], self._reply(variant, body, index))
            for body, heard in zip(variant.load.bodies(), outcome.heard, strict=True)
            if not heard.has_left
            for index in range(2 if body["n"] == 2 else 1)
        ]

    def _reply(self, variant: Variant, body: Body, index: int) -> Choice:
        seed = body.get("seed")
        alone = {**body, "n": 1, "seed": seed + index if isinstance(seed, int) else None}
        key = (variant.alone, repr(alone))
        if key not in self._known:
            heard = listen(self._address(variant.alone), alone)
            assert heard.error is None
            assert heard.record["parks"] == 0
            self._known[key] = heard.choices[0]
        return self._known[key]

    def _address(self, arguments: tuple[str, ...]) -> str:
        if arguments not in self._addresses:
            self._addresses[arguments] = self._servers.enter_context(serving(*arguments))
        return self._addresses[arguments]


_WHO = ("Ada", "Ben", "Cem", "Dora", "Emil", "Fay", "Gus", "Hana")
_DOES = ("walks to", "looks for", "remembers", "paints", "talks about", "leaves", "dreams of")
_WHAT = ("the harbour", "an old lighthouse", "the market", "a yellow boat", "the last train")
_WHEN = ("in the morning", "before the rain", "after a long day", "while the bells ring", "alone")


def _story(index: int, sentences: int) -> str:
    """A prompt of its own for each index, from its first words on."""
    dice = random.Random(index)
    lines = [
        f"{dice.choice(_WHO)} {dice.choice(_DOES)} {dice.choice(_WHAT)} {dice.choice(_WHEN)}."
        for _ in range(sentences)
    ]
    return f"Story {index + 1}. " + " ".join(lines) + " Then"
