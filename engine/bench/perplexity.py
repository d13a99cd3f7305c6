"""How well a model foresees a text as it is served, and in float32 on the same dequantised weights.

Perplexity is the exponential of the mean surprise, in nats, at each token after those before it. Every token's logits
are looked at. The caller's thread calls torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from engine.api import Device, KvType, LoadOptions
from engine.core.config import PAGE_TOKENS
from engine.core.types import Sequence as Row
from engine.core.types import StepRow
from engine.formats.checkpoint import open_checkpoint
from engine.runtime.compute import Compute
from engine.runtime.model_runner import TORCH, ModelRunner
from engine.text.tokenizer import load_tokenizer
from kernels.api import StepInputs

WINDOW_TOKENS = 1024
"""A text is read in windows of so many tokens, or of as many as the model's has."""
_STEP_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Perplexity:
    """Of one text, read in both ways."""

    num_tokens: int
    """Tokens that were foreseen."""
    served: float
    float32: float

    @property
    def difference(self) -> float:
        """How far the served one is off, as a share; above 0: it is the worse one."""
        return self.served / self.float32 - 1


def measure_perplexity(
    path: Path, options: LoadOptions, text: str, *, most_tokens: int | None = None
) -> Perplexity:
    """Read the beginning of a text with a model as `options` serve it, then in float32.

    Raises ValueError for a text of less than two tokens, and what `ModelRunner.load` raises.
    """
    with closing(open_checkpoint(path)) as checkpoint:
        token_ids = load_tokenizer(checkpoint).encode(text, add_special=True)[:most_tokens]
    if len(token_ids) < 2:
        raise ValueError(f"a text of {len(token_ids)} tokens foresees none; give at least two")
    exact = replace(options, device=Device.CPU, cpu_variant=TORCH, kv_type=KvType.F32)
    served = _surprises(path, options, token_ids)
    float32 = _surprises(path, exact, token_ids)
    return Perplexity(len(served), *(math.exp(np.mean(one)) for one in (served, float32)))


def _surprises(path: Path, options: LoadOptions, token_ids: Sequence[int]) -> list[float]:
    """Of each token that has others before it in its window."""
    options = replace(
        options, pool_tokens=WINDOW_TOKENS, parallel=_STEP_TOKENS, batch_tokens=_STEP_TOKENS
    )
    with closing(open_checkpoint(path)) as checkpoint:
        runner = ModelRunner.load(checkpoint, options, lambda share: None)
    with closing(runner):
        compute = runner.wrap_compute(lambda inner: inner)
        size = min(WINDOW_TOKENS, runner.window_tokens)
        pages = list(range(-(-size // PAGE_TOKENS)))
        runner.commit([_row(pages, size)])
        return [
            surprise
            for begin in range(0, len(token_ids), size)
            for surprise in _of_window(compute, token_ids[begin : begin + size], pages)
        ]


def _of_window(compute: Compute, token_ids: Sequence[int], pages: list[int]) -> Iterator[float]:
    for begin in range(0, len(token_ids) - 1, _STEP_TOKENS):
        end = min(begin + _STEP_TOKENS, len(token_ids) - 1)
        count = end - begin
        positions = list(range(begin, end))
        step = StepInputs(
            list(token_ids[begin:end]), positions, [0] * count, [pages], list(range(count))
        )
        logits = compute.run(step).astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        came = logits[range(count), token_ids[begin + 1 : end + 1]]
        yield from (np.log(np.exp(logits).sum(axis=1)) - came).tolist()


def _row(pages: list[int], size: int) -> StepRow:
    """All pages as a row that writes them, so that there is memory behind them."""
    sequence = Row(
        request_id="text",
        token_ids=[0] * size,
        num_prompt=size,
        max_new_tokens=1,
        eos_ids=frozenset(),
        priority=0,
        arrival=0,
        arrival_s=0.0,
        page_table=pages,
    )
    return StepRow(sequence, 0, size)
