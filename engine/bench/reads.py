"""What one step of decoding has to read of a model's weights. Reads the file's header only; any thread, no torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path

from engine.formats.checkpoint import open_checkpoint
from engine.models.registry import find_architecture
from engine.models.spec import parse_spec
from engine.models.weight_map import map_weights
from kernels.api import Embedding, Op, WeightRef


def weight_bytes_a_step(path: Path) -> int:
    """Bytes, as they are in the file, of all weights but a table that rows are only looked up in.

    Raises as `open_checkpoint` does, and CorruptModel or UnsupportedModel where the weights are not the model's.
    """
    with closing(open_checkpoint(path)) as checkpoint:
        architecture = find_architecture(checkpoint.architecture)
        spec = parse_spec(checkpoint)
        program = architecture.record(spec)
        sources = map_weights(program, architecture, spec, checkpoint)
        multiplied = (op for op in program.ops if not isinstance(op, Embedding))
        names = {weight.name for op in multiplied for weight in _weights(op)}
        tensors = {sources[name].tensor for name in names}
        return sum(checkpoint.tensors[name].num_bytes for name in tensors)


def _weights(op: Op) -> Iterator[WeightRef]:
    for one in fields(op):
        value = getattr(op, one.name)
        if isinstance(value, WeightRef):
            yield value
