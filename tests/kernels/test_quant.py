"""Every storage format against a scalar decoder written from the format's definition.

The decoders here take one block as bytes and give Python floats, one value at a time. Products of
a half-precision scale with small integers are exact in float32 and float64, so results are equal
bit for bit.
"""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable

import gguf
import numpy as np
import pytest

from kernels.quant import BLOCK_FORMATS, CHUNK_VALUES, block_format, dequantize

IQ4_LEVELS = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
E2M1_LEVELS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def half(block: bytes, at: int) -> float:
    return struct.unpack_from("<e", block, at)[0]


def nibbles(packed: bytes) -> list[int]:
    """All low halves, then all high halves."""
    return [byte & 15 for byte in packed] + [byte >> 4 for byte in packed]


def decode_f32(block: bytes) -> list[float]:
    return [struct.unpack("<f", block)[0]]


def decode_f16(block: bytes) -> list[float]:
    return [half(block, 0)]


def decode_bf16(block: bytes) -> list[float]:
    return [struct.unpack("<f", b"\0\0" + block)[0]]


def decode_q4_0(block: bytes) -> list[float]:
    return [half(block, 0) * (q - 8) for q in nibbles(block[2:])]


def decode_q4_1(block: bytes) -> list[float]:
    return [half(block, 0) * q + half(block, 2) for q in nibbles(block[4:])]


def decode_q5_0(block: bytes) -> list[float]:
    (fifth_bits,) = struct.unpack_from("<I", block, 2)
    low = nibbles(block[6:])
    return [half(block, 0) * ((low[i] | (fifth_bits >> i & 1) << 4) - 16) for i in range(32)]


def decode_q5_1(block: bytes) -> list[float]:
    (fifth_bits,) = struct.unpack_from("<I", block, 4)
    low = nibbles(block[8:])
    return [
        half(block, 0) * (low[i] | (fifth_bits >> i & 1) << 4) + half(block, 2) for i in range(32)
    ]


def decode_q8_0(block: bytes) -> list[float]:
    return [half(block, 0) * q for q in struct.unpack_from("<32b", block, 2)]


def decode_q2_k(block: bytes) -> list[float]:
    scales, quants = block[:16], block[16:80]
    scale, minimum = half(block, 80), half(block, 82)
    values = []
    for i in range(256):
        part, plane, byte = i // 128, i % 128 // 32, i % 32
        q = quants[part * 32 + byte] >> 2 * plane & 3
        packed = scales[i // 16]
        values.append(scale * (packed & 15) * q - minimum * (packed >> 4))
    return values


def decode_q3_k(block: bytes) -> list[float]:
    high_bits, quants, packed, scale = block[:32], block[32:96], block[96:108], half(block, 108)
    values = []
    for i in range(256):
        part, plane, byte = i // 128, i % 128 // 32, i % 32
        low = quants[part * 32 + byte] >> 2 * plane & 3
        high = high_bits[byte] >> (i // 32) & 1
        group = i // 16
        six_bits = packed[group % 8] >> 4 * (group // 8) & 15
        six_bits |= (packed[8 + group % 4] >> 2 * (group // 4) & 3) << 4
        values.append(scale * (six_bits - 32) * (low - (0 if high else 4)))
    return values


def scale_and_minimum(packed: bytes, group: int) -> tuple[int, int]:
    """The six-bit pair of a group of 32 in Q4_K and Q5_K."""
    if group < 4:
        return packed[group] & 63, packed[group + 4] & 63
    low = packed[group + 4]
    return low & 15 | packed[group - 4] >> 6 << 4, low >> 4 | packed[group] >> 6 << 4


def decode_q4_k(block: bytes) -> list[float]:
    values = []
    for i in range(256):
        byte = block[16 + i // 64 * 32 + i % 32]
        q = byte >> 4 if i % 64 >= 32 else byte & 15
        scale, minimum = scale_and_minimum(block[4:16], i // 32)
        values.append(half(block, 0) * scale * q - half(block, 2) * minimum)
    return values


def decode_q5_k(block: bytes) -> list[float]:
    values = []
    for i in range(256):
        byte = block[48 + i // 64 * 32 + i % 32]
        q = byte >> 4 if i % 64 >= 32 else byte & 15
        q |= (block[16 + i % 32] >> (i // 32) & 1) << 4
        scale, minimum = scale_and_minimum(block[4:16], i // 32)
        values.append(half(block, 0) * scale * q - half(block, 2) * minimum)
    return values


def decode_q6_k(block: bytes) -> list[float]:
    low, high, scale = block[:128], block[128:192], half(block, 208)
    scales = struct.unpack_from("<16b", block, 192)
    values = []
    for i in range(256):
        part, quarter, byte = i // 128, i % 128 // 32, i % 32
        four_bits = low[part * 64 + quarter % 2 * 32 + byte] >> 4 * (quarter // 2) & 15
        two_bits = high[part * 32 + byte] >> 2 * quarter & 3
        values.append(scale * scales[i // 16] * ((four_bits | two_bits << 4) - 32))
    return values


def decode_iq4_nl(block: bytes) -> list[float]:
    return [half(block, 0) * IQ4_LEVELS[q] for q in nibbles(block[2:])]


def decode_iq4_xs(block: bytes) -> list[float]:
    (high_scales,) = struct.unpack_from("<H", block, 2)
    values = []
    for group in range(8):
        six_bits = block[4 + group // 2] >> 4 * (group % 2) & 15
        six_bits |= (high_scales >> 2 * group & 3) << 4
        packed = block[8 + group * 16 : 24 + group * 16]
        values += [half(block, 0) * (six_bits - 32) * IQ4_LEVELS[q] for q in nibbles(packed)]
    return values


def decode_mxfp4(block: bytes) -> list[float]:
    scale = 2.0 ** (block[0] - 127)
    return [(-scale if q & 8 else scale) * E2M1_LEVELS[q & 7] for q in nibbles(block[1:])]


DECODERS: dict[str, Callable[[bytes], list[float]]] = {
    "F32": decode_f32,
    "F16": decode_f16,
    "BF16": decode_bf16,
    "Q4_0": decode_q4_0,
    "Q4_1": decode_q4_1,
    "Q5_0": decode_q5_0,
    "Q5_1": decode_q5_1,
    "Q8_0": decode_q8_0,
    "Q2_K": decode_q2_k,
    "Q3_K": decode_q3_k,
    "Q4_K": decode_q4_k,
    "Q5_K": decode_q5_k,
    "Q6_K": decode_q6_k,
    "IQ4_NL": decode_iq4_nl,
    "IQ4_XS": decode_iq4_xs,
    "MXFP4": decode_mxfp4,
}


def random_bytes(size: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)


def decode_all(storage: str, raw: bytes) -> np.ndarray:
    size = BLOCK_FORMATS[storage].block_bytes
    values = [v for at in range(0, len(raw), size) for v in DECODERS[storage](raw[at : at + size])]
    with np.errstate(all="ignore"):
        return np.array(values, dtype=np.float64).astype(np.float32)


def test_every_format_has_a_decoder_here() -> None:
    assert set(DECODERS) == set(BLOCK_FORMATS)


@pytest.mark.parametrize("storage", BLOCK_FORMATS)
def test_random_bytes_decode_as_the_definition_says(storage: str) -> None:
    form = BLOCK_FORMATS[storage]
    shape = (7, 5, 3 * form.block_values)
    raw = random_bytes(form.num_bytes(shape), seed=len(storage))

    values = dequantize(raw, storage, shape)

    assert values.shape == shape
    assert values.dtype == np.float32
    assert values.flags.c_contiguous
    np.testing.assert_array_equal(values.reshape(-1), decode_all(storage, raw.tobytes()))


@pytest.mark.parametrize("storage", BLOCK_FORMATS)
def test_chunks_join_without_a_seam(storage: str) -> None:
    form = BLOCK_FORMATS[storage]
    columns = 256
    shape = (2 * CHUNK_VALUES // columns + 3, columns)
    block = random_bytes(form.num_bytes((1, columns)), seed=5)
    raw = np.tile(block, shape[0])
    raw[-block.size :] = random_bytes(block.size, seed=6)

    values = dequantize(raw, storage, shape)

    first = decode_all(storage, block.tobytes())
    np.testing.assert_array_equal(values[:-1], np.broadcast_to(first, (shape[0] - 1, columns)))
    np.testing.assert_array_equal(values[-1], decode_all(storage, raw[-block.size :].tobytes()))


@pytest.mark.parametrize("storage", BLOCK_FORMATS)
@pytest.mark.parametrize(
    "bits", [0x7C00, 0xFC00, 0x7E01, 0x7BFF], ids=["inf", "-inf", "nan", "max"]
)
def test_scales_that_are_not_finite_do_no_harm(storage: str, bits: int) -> None:
    form = BLOCK_FORMATS[storage]
    raw = np.frombuffer(struct.pack("<H", bits) * (form.block_bytes // 2 + 1), dtype=np.uint8)
    values = dequantize(raw[: form.block_bytes], storage, (1, form.block_values))
    assert values.shape == (1, form.block_values)


@pytest.mark.parametrize("storage", ["F32", "Q4_1", "Q6_K"])
def test_the_result_owns_its_memory(storage: str) -> None:
    form = BLOCK_FORMATS[storage]
    raw = np.zeros(form.num_bytes((1, 256)), dtype=np.uint8)
    values = dequantize(raw, storage, (1, 256))
    raw[:] = 77
    assert not values.any()


def test_unaligned_bytes_are_read() -> None:
    raw = np.concatenate([np.zeros(1, np.uint8), random_bytes(64 * 4, seed=1)])[1:]
    np.testing.assert_array_equal(dequantize(raw, "F32", (64,)), decode_all("F32", raw.tobytes()))


def test_peak_memory_stays_near_the_result() -> None:
    shape = (4096, 1024)
    raw = random_bytes(BLOCK_FORMATS["Q4_K"].num_bytes(shape), seed=2)
    tracemalloc.start()
    try:
        values = dequantize(raw, "Q4_K", shape)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < values.nbytes + 32 * CHUNK_VALUES


def test_sizes_agree_with_the_gguf_package() -> None:
    for name, form in BLOCK_FORMATS.items():
        sizes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
        assert (form.block_values, form.block_bytes) == sizes


def test_an_unknown_storage_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="IQ2_XXS is no storage format"):
        block_format("IQ2_XXS")
    with pytest.raises(ValueError, match="TQ1_0"):
        dequantize(np.zeros(54, np.uint8), "TQ1_0", (1, 256))


def test_rows_of_partial_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="no whole number of Q4_0 blocks"):
        dequantize(np.zeros(18, np.uint8), "Q4_0", (2, 16))


@pytest.mark.parametrize("size", [0, 17, 19, 36])
def test_a_wrong_number_of_bytes_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="takes 18 bytes"):
        dequantize(np.zeros(size, np.uint8), "Q4_0", (1, 32))
