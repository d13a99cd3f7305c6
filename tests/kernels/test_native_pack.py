"""Packed weights mean exactly what the file means, value by value, and take no more room than they should."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fakes.native_rig import STORAGES, needs_kernels
from fakes.weight_blocks import random_blocks
from kernels.cpu.library import NativeError, NativeLibrary, ThreadTeam, load_library
from kernels.quant import BLOCK_FORMATS, dequantize

pytestmark = needs_kernels

GROWTH = {"Q4_K": 1.03, "Q5_K": 1.03, "Q3_K": 1.04, "IQ4_XS": 1.02}


def packed_rows(
    storage: str, raw: NDArray[np.uint8], shape: tuple[int, int], threads: int = 1
) -> tuple[NDArray[np.float32], int]:
    """All rows read back from the packed form, and its bytes."""
    library = load_library()
    functions = library.functions
    with ThreadTeam(library, threads) as team:
        weight = functions.layby_weight_new(storage.encode(), raw.ctypes.data, *shape, team.handle)
        values = np.full(shape, np.nan, np.float32)
        for row in range(shape[0]):
            library.check(functions.layby_weight_row(weight, row, values[row].ctypes.data))
        size = functions.layby_weight_bytes(weight)
        functions.layby_weight_free(weight)
    return values, size


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("outputs", [1, 16, 37])
def test_any_bits_come_back_as_the_values_they_mean(storage: str, outputs: int) -> None:
    form = BLOCK_FORMATS[storage]
    shape = (outputs, 3 * form.block_values)
    raw = np.random.default_rng(7).integers(0, 256, form.num_bytes(shape), dtype=np.uint8)

    values, _ = packed_rows(storage, raw, shape)

    np.testing.assert_array_equal(values, dequantize(raw, storage, shape))


@pytest.mark.parametrize("storage", STORAGES)
def test_the_packed_form_is_hardly_larger_than_the_file(storage: str) -> None:
    shape = (64, 512)
    raw = np.zeros(BLOCK_FORMATS[storage].num_bytes(shape), np.uint8)

    _, size = packed_rows(storage, raw, shape)

    assert size <= raw.size * GROWTH.get(storage, 1)


def test_threads_pack_the_same() -> None:
    shape = (1000, 256)
    raw = random_blocks("Q6_K", shape, seed=5)
    one, _ = packed_rows("Q6_K", raw, shape)
    three, _ = packed_rows("Q6_K", raw, shape, threads=3)
    np.testing.assert_array_equal(one, three)


def refused(library: NativeLibrary, storage: bytes, row: int) -> None:
    raw = np.zeros(18, np.uint8)
    with ThreadTeam(library, 1) as team:
        weight = library.functions.layby_weight_new(storage, raw.ctypes.data, 1, 32, team.handle)
        library.check(weight)
        try:
            values = np.empty(32, np.float32)
            library.check(library.functions.layby_weight_row(weight, row, values.ctypes.data))
        finally:
            library.functions.layby_weight_free(weight)


def test_an_unknown_storage_and_a_row_that_is_not_there_are_refused() -> None:
    library = load_library()
    with pytest.raises(NativeError, match="no kernel reads the storage IQ1_S"):
        refused(library, b"IQ1_S", 0)
    with pytest.raises(NativeError, match="no such output"):
        refused(library, b"Q4_0", 1)
