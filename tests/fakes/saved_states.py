"""Saved states to test with."""

from __future__ import annotations

import numpy as np

from engine.api import Grammar, GrammarKind, SamplingParams
from engine.runtime.disk.saved_state import SavedState

PAGE_BYTES = 96


def state(**fields: object) -> SavedState:
    tokens = tuple(range(40))
    values: dict[str, object] = {
        "request_id": "chat-1-2",
        "model_name": "tiny",
        "model_sha256": "ab" * 32,
        "compute": "torch",
        "page_bytes": PAGE_BYTES,
        "num_pages": 2,
        "num_prompt": 30,
        "num_discarded": 0,
        "seed": (1 << 64) - 1,
        "sampling": SamplingParams(
            temperature=0.7, logit_bias=((3, float("-inf")), (4, 0.1)), seed=-4
        ),
        "max_tokens": None,
        "stop": ("END", "\n\n é"),
        "ignore_eos": True,
        "grammar": Grammar(kind=GrammarKind.REGEX, source='[a-z]+"é\n', param="x"),
        "continues_text": False,
        "plan": None,
        "num_parks": 3,
        "num_recomputes": 1,
        "parked_s": 0.1 + 0.2,
        "token_ids": tokens,
        "reply_ids": tokens[30:],
        **fields,
    }
    return SavedState(**values)  # type: ignore[arg-type]


def some_pages(count: int = 2) -> np.ndarray:
    return np.arange(count * PAGE_BYTES, dtype=np.uint8).reshape(count, PAGE_BYTES)
