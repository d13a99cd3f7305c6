"""Embeddings for every route that gives them: the engine's requests, and vectors as clients want them.

Server thread.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from engine.api import ModelInfo, Origin, Request, RequestGroup, Text, TokenIds, Wanted
from engine.errors import InvalidRequest
from studio.server.prompt_fields import Prompt

MAX_TEXTS = 2048
_IN_ONE_TURN = 8
"""Vectors that are encoded without letting others on the loop: some milliseconds."""


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


async def encoded(
    vectors: Iterable[tuple[float, ...]],
    dimensions: int | None = None,
    *,
    as_base64: bool = False,
) -> list[bytes]:
    """Each vector as JSON: a list of numbers, or float32 in base64.

    A large batch takes a second; others on the server's loop have their turn in between.
    """
    coded = []
    for vector in vectors:
        kept = shortened(vector, dimensions)
        coded.append(_base64(kept) if as_base64 else json.dumps(kept).encode())
        if len(coded) % _IN_ONE_TURN == 0:
            await asyncio.sleep(0)
    return coded


def _base64(vector: Sequence[float]) -> bytes:
    """A string of little-endian float32."""
    return b'"' + base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)) + b'"'
