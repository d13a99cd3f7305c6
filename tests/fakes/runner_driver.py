"""Drives a ModelRunner without scheduler or sampler: sequences continued greedily, in chunks, on given pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.core.config import PAGE_TOKENS
from engine.core.types import Sequence as CoreSequence
from engine.core.types import StepRow
from engine.runtime.model_runner import ModelRunner
from fakes.builders import make_sequence


@dataclass(slots=True)
class Reply:
    """What a sequence got: its new tokens, and the logits each was chosen from."""

    token_ids: list[int] = field(default_factory=list)
    logits: list[np.ndarray] = field(default_factory=list)

    def equals(self, other: Reply) -> bool:
        """Bit for bit."""
        return self.token_ids == other.token_ids and all(
            np.array_equal(a.view(np.int32), b.view(np.int32))
            for a, b in zip(self.logits, other.logits, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Parks:
    """Every sequence leaves its pages after so many tokens of its reply, and goes on at once on others."""

    every: int
    keeps: bool
    """Whether the pages' bytes are put back; else all is computed again."""


def generate(
    runner: ModelRunner,
    prompts: Sequence[Iterable[int]],
    *,
    new_tokens: int,
    chunk: int = 256,
    first_chunk: int | None = None,
    pages: Iterable[int] | None = None,
    parks: Parks | None = None,
) -> list[Reply]:
    """Continue all prompts together, at most `chunk` tokens of each in a step, in its first one `first_chunk`.

    `pages` are dealt out in order.
    """
    free = list(range(runner.num_pages) if pages is None else pages)
    replies = [Reply() for _ in prompts]
    sequences = [
        make_sequence(prompt, arrival=i, max_new=new_tokens + 1) for i, prompt in enumerate(prompts)
    ]
    for sequence in sequences:
        length = len(sequence.token_ids) + new_tokens
        sequence.page_table.extend(free.pop(0) for _ in range(-(-length // PAGE_TOKENS)))
    while open_ones := [s for s in sequences if s.num_generated < new_tokens]:
        rows = tuple(_row(s, chunk if s.num_computed else first_chunk or chunk) for s in open_ones)
        logits = iter(runner.execute(rows))
        for row in rows:
            if row.samples:
                reply = replies[sequences.index(row.seq)]
                reply.logits.append(next(logits).copy())
                reply.token_ids.append(int(reply.logits[-1].argmax()))
        for row in rows:
            row.seq.num_computed += row.count
            if row.seq.num_computed == len(row.seq.token_ids):
                row.seq.token_ids.append(replies[sequences.index(row.seq)].token_ids[-1])
                if parks is not None and row.seq.num_generated % parks.every == 0:
                    _park(runner, row.seq, free, keeps=parks.keeps)
    return replies


def _park(runner: ModelRunner, sequence: CoreSequence, free: list[int], *, keeps: bool) -> None:
    """Leave the pages, to which somebody else writes, and come back on others."""
    table = sequence.page_table
    content = np.stack(runner.view_pages(table))
    runner.fill_pages(table, np.roll(content, 1, axis=0))
    free += table
    table[:] = [free.pop(0) for _ in table]
    if keeps:
        runner.fill_pages(table, content)
    else:
        sequence.num_computed = 0


def _row(sequence: CoreSequence, chunk: int) -> StepRow:
    return StepRow(sequence, sequence.num_computed, min(chunk, sequence.num_uncomputed))
