"""Where a program's weights are in a file, all checked before any is read. No torch; used by the thread that loads."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from engine.errors import CorruptModel, UnsupportedModel
from engine.formats.base import Checkpoint, FileFormat
from engine.models.architecture import OUTER_NAMES, Architecture
from engine.models.spec import ModelSpec
from kernels.api import Program, WeightRef

_LAYER_NAME = re.compile(r"layers\.(\d+)\.(.+)\.(weight|bias)")
_IGNORED = re.compile(r"rope_freqs\.weight|lm_head\.weight|.*rotary_emb\.inv_freq")
"""Tensors that say nothing new: read elsewhere, tied to the embedding, or computed from the metadata."""
_IGNORED_HEAD = re.compile(rf"{_IGNORED.pattern}|output\.weight")
"""The same for a model that gives embeddings: a head that its file still has is not used."""
_MODEL = "model."
"""What a folder's names begin with, where it was not saved without the head, as those for embeddings often are."""
_MOST_NAMED = 8
"""So many wrong tensors are named in an error; the rest are counted."""


@dataclass(frozen=True, slots=True)
class WeightSource:
    """One weight of a program in a file."""

    tensor: str
    paired_head_dim: int = 0
    """Rows of each head of this size stand in rotary pairs (2i, 2i + 1) and must be put back; 0: they do not."""


def map_weights(
    program: Program, architecture: Architecture, spec: ModelSpec, checkpoint: Checkpoint
) -> dict[str, WeightSource]:
    """Canonical name -> source, for every weight of `program`.

    Raises CorruptModel naming every tensor that is missing or has another shape, and UnsupportedModel when the file
    has tensors that the architecture does not know: leaving them out would give another model.
    """
    sources, faults = {}, []
    is_bare = checkpoint.format is not FileFormat.GGUF and not any(
        name.startswith(_MODEL) for name in checkpoint.tensors
    )
    for weight in program.weights:
        source = _source(weight, architecture, spec, checkpoint.format)
        if is_bare:
            source = replace(source, tensor=source.tensor.removeprefix(_MODEL))
        sources[weight.name] = source
        info = checkpoint.tensors.get(source.tensor)
        if info is None:
            faults.append(f"{source.tensor} is missing")
        elif info.shape != weight.shape:
            faults.append(
                f"{source.tensor} has shape {list(info.shape)}, it must be {list(weight.shape)}"
            )
    if faults:
        raise CorruptModel(
            f"{len(faults)} of {len(program.weights)} tensors are not as an {spec.architecture} model has them: "
            f"{_named(faults)}; the file is damaged or incomplete"
        )
    known = {source.tensor for source in sources.values()}
    ignored = _IGNORED_HEAD if spec.gives_embeddings else _IGNORED
    extra = [
        name for name in checkpoint.tensors if name not in known and not ignored.fullmatch(name)
    ]
    if extra:
        raise UnsupportedModel(
            f"{len(extra)} tensors are unknown in an {spec.architecture} model: {_named(extra)}; "
            "it is a variant that is not supported yet"
        )
    return sources


def _source(
    weight: WeightRef, architecture: Architecture, spec: ModelSpec, file_format: FileFormat
) -> WeightSource:
    column = 0 if file_format is FileFormat.GGUF else 1
    layer_name = _LAYER_NAME.fullmatch(weight.name)
    if layer_name is None:
        part, _, ending = weight.name.rpartition(".")
        return WeightSource(f"{OUTER_NAMES[part][column]}.{ending}")
    layer, part, ending = layer_name.groups()
    prefix = ("blk", "model.layers")[column]
    is_paired = (
        architecture.gguf_pairs_rotary
        and file_format is FileFormat.GGUF
        and part in ("attn.q", "attn.k")
    )
    return WeightSource(
        f"{prefix}.{layer}.{architecture.layer_names[part][column]}.{ending}",
        spec.head_dim if is_paired else 0,
    )


def _named(faults: list[str]) -> str:
    names = ", ".join(fault[:200] for fault in faults[:_MOST_NAMED])
    rest = len(faults) - _MOST_NAMED
    return f"{names} and {rest} more" if rest > 0 else names
