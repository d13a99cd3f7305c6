"""Whether the loaded model can give what a request wants. Pure; engine thread."""

from __future__ import annotations

from engine.api import ModelInfo, Request, Wanted
from engine.errors import InvalidRequest
from engine.models.spec import ModelSpec


def check_wanted(request: Request, info: ModelInfo, spec: ModelSpec) -> None:
    """Raises InvalidRequest, with the remedy, where it cannot."""
    if request.wants is Wanted.TEXT and spec.gives_embeddings:
        raise InvalidRequest(
            f"the model {info.name!r} gives embeddings and writes no text; use /v1/embeddings, or load a model that "
            "writes",
            param="model",
        )
    if request.wants is Wanted.EMBEDDING and not spec.gives_embeddings:
        raise InvalidRequest(
            f"the model {info.name!r} writes text and gives no embeddings (its files name no pooling); load one that "
            "is made for them, such as Qwen3-Embedding",
            param="model",
        )
