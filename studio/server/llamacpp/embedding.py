"""POST /embedding and /embeddings as llama-server has them: its wire type, and its ways of scaling vectors.

Any thread; no web framework.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Annotated

from pydantic import AliasChoices, BeforeValidator, Field, WithJsonSchema

from studio.server import prompt_fields
from studio.server.embeddings import MAX_TEXTS
from studio.server.prompt_fields import prompts_schema, read_prompts
from studio.server.wire import MaxWait, WireModel, wrong_value

_LENGTH_1 = 2
_MOST_POWER = 100
_FULL_SCALE = 32760.0

Vector = tuple[float, ...]


def _read_norm(value: object) -> object:
    if value == -1:
        raise wrong_value(
            "is -1, and what a vector was before it was scaled is not kept; leave it out for length 1"
        )
    return value


class LlamaEmbeddingRequest(WireModel):
    """POST /embedding. `texts` is the wire's `content` or `input`, always a tuple."""

    texts: Annotated[
        tuple[prompt_fields.Prompt, ...],
        BeforeValidator(partial(read_prompts, most=MAX_TEXTS)),
        WithJsonSchema(prompts_schema(MAX_TEXTS)),
    ] = Field(validation_alias=AliasChoices("content", "input"))
    model: str | None = None
    embd_normalize: (
        Annotated[int, Field(ge=0, le=_MOST_POWER), BeforeValidator(_read_norm)] | None
    ) = None
    """0: the largest number is 32760; 1: they add up to 1; 2: length 1, as without; more: the norm of that power."""
    max_wait: MaxWait = None


def scaled(vector: Vector, norm: int | None) -> Vector:
    """A vector of length 1, as `embd_normalize` wants it."""
    if norm is None or norm == _LENGTH_1:
        return vector
    factor = _FULL_SCALE / _largest(vector) if norm == 0 else 1.0 / _norm(vector, norm)
    return tuple(value * factor for value in vector)


def _largest(vector: Sequence[float]) -> float:
    return max(map(abs, vector))


def _norm(vector: Sequence[float], power: int) -> float:
    """Of the numbers by the largest, whose powers are none too small to count."""
    largest = _largest(vector)
    return float(
        largest * math.fsum((abs(value) / largest) ** power for value in vector) ** (1 / power)
    )
