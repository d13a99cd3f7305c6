"""A calibration as data that can be kept in a file, and read again with every field checked. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields

from engine.core.cost_model import Calibration as Calibration

_MOST = 1e15


def write_calibration(calibration: Calibration) -> dict[str, float]:
    """Its figures by name, for JSON."""
    return asdict(calibration)


def read_calibration(data: Mapping[str, object]) -> Calibration:
    """Raises ValueError, naming the field, on figures that are missing or make no sense."""
    figures: dict[str, float] = {}
    for entry in fields(Calibration):
        value = data.get(entry.name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MOST:
            raise ValueError(f"{entry.name} is {value!r}, it must be a number above 0")
        figures[entry.name] = value
    return Calibration(
        step_s=figures["step_s"],
        decode_token_s=figures["decode_token_s"],
        prefill_token_s=figures["prefill_token_s"],
        context_token_s=figures["context_token_s"],
        token_bytes=int(figures["token_bytes"]),
        copy_out_bytes_s=figures["copy_out_bytes_s"],
        copy_in_bytes_s=figures["copy_in_bytes_s"],
        park_s=figures["park_s"],
    )
