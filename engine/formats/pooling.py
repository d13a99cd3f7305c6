"""How a model's files say that it gives embeddings: which of a text's last states become its vector. No torch.

Sources: GGUF's pooling_type as llama.cpp numbers it; the Pooling module of a sentence-transformers folder.
"""

from __future__ import annotations

from enum import Enum

from engine.formats.base import Checkpoint, FileFormat


class Pooling(Enum):
    """What becomes the vector."""

    NONE = "none"
    """Nothing: the model writes text."""
    MEAN = "mean"
    FIRST = "cls"
    LAST = "last"
    OTHER = "other"
    """Something that cannot be done here, like the score of a reranker."""


_GGUF = {0: Pooling.NONE, 1: Pooling.MEAN, 2: Pooling.FIRST, 3: Pooling.LAST}
_MODES = {
    "pooling_mode_mean_tokens": Pooling.MEAN,
    "pooling_mode_cls_token": Pooling.FIRST,
    "pooling_mode_lasttoken": Pooling.LAST,
}
_NAMES = {"mean": Pooling.MEAN, "cls": Pooling.FIRST, "lasttoken": Pooling.LAST}
"""The newer way of the folders: `"pooling_mode": "mean"`."""
_MODULES = frozenset({"Transformer", "Pooling", "Normalize"})
"""Whoever has others, a layer behind the pooling say, means another vector."""


def read_pooling(checkpoint: Checkpoint) -> Pooling:
    """What the files say; OTHER for whatever is not known."""
    if checkpoint.format is FileFormat.GGUF:
        value = checkpoint.metadata.get(f"{checkpoint.architecture}.pooling_type", 0)
        return _GGUF.get(value, Pooling.OTHER) if type(value) is int else Pooling.OTHER
    folder = checkpoint.folder_text
    if folder is None or not folder.pooling:
        return Pooling.NONE
    if not _MODULES.issuperset(folder.modules):
        return Pooling.OTHER
    name = folder.pooling.get("pooling_mode")
    if isinstance(name, str):
        return _NAMES.get(name, Pooling.OTHER)
    chosen = [
        mode
        for mode, value in folder.pooling.items()
        if mode.startswith("pooling_mode_") and value is True
    ]
    return _MODES.get(chosen[0], Pooling.OTHER) if len(chosen) == 1 else Pooling.OTHER
