"""The C interface of layby_cpu.h as ctypes sees it: its structs, its constants and the types of its functions.

Kept in the header's order; `LAYBY_ABI` there and ABI here change together. No torch, nothing of the engine.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import POINTER, Structure, c_char_p, c_float, c_int32, c_int64, c_void_p
from enum import IntEnum
from types import MappingProxyType

ABI = 8
NONE = -1


class BufferKind(IntEnum):
    """What a buffer holds: float rows, or rows prepared for products as floats, codes or pairs of either."""

    ROWS = 0
    FLOAT_OPERAND = 1
    QUANTIZED_OPERAND = 2
    BFLOAT_OPERAND = 3
    PAIRED_OPERAND = 4


class RowExtent(IntEnum):
    """What the number of rows of a buffer follows."""

    TOKENS = 0
    OUTPUTS = 1


class KvKind(IntEnum):
    """How keys and values are stored: numbers, or bytes with scales."""

    F16 = 0
    F32 = 1
    Q8_0 = 2


class HeadSink(IntEnum):
    """Where finished heads go."""

    ROWS = 0
    KEYS = 1
    VALUES = 2


class InputStruct(Structure):
    """LaybyInput."""

    _fields_ = (
        ("buffer", c_int32),
        ("operand", c_int32),
        ("gathers", c_int32),
        ("epsilon", c_float),
        ("norm_weight", c_void_p),
    )


class LinearStruct(Structure):
    """LaybyLinear."""

    _fields_ = (
        ("weight", c_void_p),
        ("bias", c_void_p),
        ("residual", c_int32),
        ("out", c_int32),
    )


class HeadsStruct(Structure):
    """LaybyHeads."""

    _fields_ = (
        ("x", c_int32),
        ("out", c_int32),
        ("heads", c_int32),
        ("head_dim", c_int32),
        ("norm_weight", c_void_p),
        ("epsilon", c_float),
        ("rotary", c_int32),
        ("sink", c_int32),
        ("layer", c_int32),
    )


class KvLayerStruct(Structure):
    """LaybyKvLayer."""

    _fields_ = (
        ("key_offset", c_int64),
        ("value_offset", c_int64),
        ("kv_heads", c_int32),
        ("head_dim", c_int32),
        ("value_stride", c_int32),
    )


class AttentionStruct(Structure):
    """LaybyAttention."""

    _fields_ = (
        ("query", c_int32),
        ("out", c_int32),
        ("heads", c_int32),
        ("layer", c_int32),
        ("scale", c_float),
        ("window", c_int32),
    )


class StepStruct(Structure):
    """LaybyStep."""

    _fields_ = (
        ("rows", c_int32),
        ("outputs", c_int32),
        ("sequences", c_int32),
        ("table_stride", c_int32),
        ("tokens", c_void_p),
        ("positions", c_void_p),
        ("row_sequences", c_void_p),
        ("page_tables", c_void_p),
        ("output_rows", c_void_p),
        ("wishes", c_void_p),
    )


class FoundStruct(Structure):
    """LaybyFound."""

    _fields_ = (
        ("counts", c_void_p),
        ("drawn", c_void_p),
        ("ids", c_void_p),
        ("values", c_void_p),
        ("ranking", c_void_p),
    )


_Type = type | None
_PROGRAM = c_void_p

FUNCTIONS: Mapping[str, tuple[_Type, tuple[_Type, ...]]] = MappingProxyType(
    {
        "layby_abi": (c_int32, ()),
        "layby_error": (c_char_p, ()),
        "layby_variant": (c_char_p, (c_int32,)),
        "layby_variant_runs_here": (c_int32, (c_char_p,)),
        "layby_operand_kind": (c_int32, (c_char_p, c_char_p)),
        "layby_team_new": (c_void_p, (c_int32,)),
        "layby_team_free": (None, (c_void_p,)),
        "layby_weight_new": (c_void_p, (c_char_p, c_void_p, c_int64, c_int64, c_void_p)),
        "layby_weight_bytes": (c_int64, (c_void_p,)),
        "layby_weight_row": (c_int32, (c_void_p, c_int64, c_void_p)),
        "layby_weight_free": (None, (c_void_p,)),
        "layby_program_new": (c_void_p, (c_char_p, c_int32, c_int32)),
        "layby_program_free": (None, (_PROGRAM,)),
        "layby_program_set_pool": (c_int32, (_PROGRAM, c_void_p, c_int64, c_int32, c_int32)),
        "layby_program_add_buffer": (c_int32, (_PROGRAM, c_int32, c_int64, c_int32)),
        "layby_program_add_kv_layer": (c_int32, (_PROGRAM, POINTER(KvLayerStruct))),
        "layby_program_add_rotary": (c_int32, (_PROGRAM, c_void_p, c_int32, c_float)),
        "layby_program_add_embedding": (c_int32, (_PROGRAM, c_void_p, c_float, c_int32)),
        "layby_program_add_norm": (
            c_int32,
            (_PROGRAM, c_int32, c_int32, c_void_p, c_float, c_int32),
        ),
        "layby_program_add_linear": (
            c_int32,
            (_PROGRAM, POINTER(InputStruct), POINTER(LinearStruct), c_int32),
        ),
        "layby_program_add_gated_linear": (
            c_int32,
            (_PROGRAM, POINTER(InputStruct), POINTER(LinearStruct), c_int32, c_int32),
        ),
        "layby_program_add_gated": (c_int32, (_PROGRAM, c_int32, c_int32, c_int32, c_int32)),
        "layby_program_add_heads": (c_int32, (_PROGRAM, POINTER(HeadsStruct), c_int32)),
        "layby_program_add_attention": (c_int32, (_PROGRAM, POINTER(AttentionStruct))),
        "layby_program_add_take": (c_int32, (_PROGRAM, c_int32, c_int32)),
        "layby_program_add_likeliest": (c_int32, (_PROGRAM, c_int32, POINTER(FoundStruct))),
        "layby_program_rows": (c_void_p, (_PROGRAM, c_int32, POINTER(c_int64))),
        "layby_program_run": (c_int32, (_PROGRAM, c_void_p, POINTER(StepStruct))),
        "layby_copy_pages": (
            None,
            (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_int64, c_int64),
        ),
        "layby_program_phases": (c_int32, (_PROGRAM,)),
        "layby_program_profile": (c_int32, (_PROGRAM, c_int32, c_void_p)),
    }
)
"""Result and argument types by name."""


def declare(library: ctypes.CDLL) -> None:
    """Give the library's functions their types. AttributeError where one is missing."""
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
