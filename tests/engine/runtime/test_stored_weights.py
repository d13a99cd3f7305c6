"""Weights handed to the native kernels as stored mean what they mean to everyone else, whatever the file."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.formats.checkpoint import open_checkpoint
from engine.models.registry import find_architecture
from engine.models.spec import parse_spec
from engine.models.weight_map import map_weights
from engine.runtime.stored_weights import StoredWeights
from engine.runtime.weight_reader import WeightReader
from fakes.tiny_files import write_tiny_folder, write_tiny_gguf


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("storage", ["F32", "BF16", "Q4_0", "Q8_0", "folder"])
def test_stored_weights_have_the_values_of_read_ones(
    tmp_path: Path, architecture: str, storage: str
) -> None:
    if storage == "folder":
        path = write_tiny_folder(tmp_path, model_type=architecture)
    else:
        path = write_tiny_gguf(tmp_path, architecture=architecture, storage=storage)
    with closing(open_checkpoint(path)) as checkpoint:
        known = find_architecture(checkpoint.architecture)
        spec = parse_spec(checkpoint)
        sources = map_weights(known.record(spec), known, spec, checkpoint)
        shares: list[float] = []
        stored = StoredWeights(checkpoint, sources, shares.append)
        read = WeightReader(checkpoint, sources, torch.device("cpu"), lambda share: None)
        for name in sources:
            weight = stored.stored(name)
            assert weight.storage == stored.storage(name)
            np.testing.assert_array_equal(weight.values(), read[name].numpy())
        assert shares == sorted(shares)
        assert shares[-1] == 1.0


def test_loading_ends_where_progress_says_so(tmp_path: Path) -> None:
    class Cancelled(Exception):
        pass

    def cancel(share: float) -> None:
        raise Cancelled

    with closing(open_checkpoint(write_tiny_gguf(tmp_path))) as checkpoint:
        known = find_architecture(checkpoint.architecture)
        spec = parse_spec(checkpoint)
        sources = map_weights(known.record(spec), known, spec, checkpoint)
        with pytest.raises(Cancelled):
            StoredWeights(checkpoint, sources, cancel).stored(next(iter(sources)))
