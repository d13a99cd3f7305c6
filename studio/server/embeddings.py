"""Embeddings for every route that gives them: the engine's requests, and vectors as clients want them. Any thread."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from engine.api import ModelInfo, Origin, Request, RequestGroup, Text, TokenIds, Wanted
from engine.errors import InvalidRequest
from studio.server.prompt_fields import Prompt

MAX_TEXTS = 2048


def check_embeds(model: ModelInfo, dimensions: int | None) -> None:
    """Raises InvalidRequest for a model that gives no embeddings, or fewer numbers than are wanted."""
    if not model.embedding_size:
        raise InvalidRequest(
            f"the model {model.name!r} writes text and gives no embeddings (its files name no pooling); name or load "
            "one that is made for them, such as Qwen3-Embedding",
            param="model",
        )
    if dimensions is not None and dimensions > model.embedding_size:
        raise InvalidRequest(
            f"dimensions is {dimensions}, the model {model.name!r} gives {model.embedding_size}; ask for fewer or "
            "leave it out",
            param="dimensions",
        )


@contextmanager
def about_input() -> Iterator[None]:
    """What the engine says of a prompt is said of `input`."""
    try:
        yield
    except InvalidRequest as error:
        if error.param != "prompt":
            raise
        raise InvalidRequest(str(error), param="input") from None


def embed_requests(
    texts: Sequence[Prompt], reply_id: str, *, max_wait_s: float | None = None
) -> tuple[Request, ...]:
    """One engine request for each text, all found sound before any is begun.

    Raises InvalidRequest for an empty text: there is nothing to make a vector of.
    """
    empty = next((index for index, text in enumerate(texts) if not text), None)
    if empty is not None:
        place = f" at [{empty}]" if len(texts) > 1 else ""
        raise InvalidRequest(f"input is empty{place}; send a text, or leave it out", param="input")
    group = RequestGroup(group_id=reply_id, size=len(texts)) if len(texts) > 1 else None
    return tuple(
        Request(
            request_id=f"{reply_id}-{index}",
            origin=Origin.API,
            prompt=Text(text=text) if isinstance(text, str) else TokenIds(ids=text),
            wants=Wanted.EMBEDDING,
            max_tokens=0,
            max_wait_s=max_wait_s,
            group=group,
        )
        for index, text in enumerate(texts)
    )


def shortened(vector: tuple[float, ...], dimensions: int | None) -> tuple[float, ...]:
    """The first numbers, scaled to length 1 again, as float32 has them; all of them unchanged."""
    if dimensions is None or dimensions >= len(vector):
        return vector
    kept = vector[:dimensions]
    length = math.sqrt(math.fsum(value * value for value in kept))
    if not length:
        return kept
    return struct.unpack(
        f"<{dimensions}f", struct.pack(f"<{dimensions}f", *(v / length for v in kept))
    )


def as_base64(vector: Sequence[float]) -> str:
    """float32, little-endian, in base64."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
