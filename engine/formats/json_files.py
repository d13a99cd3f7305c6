"""Small text files beside the weights, read with limits. Used by the thread that opens a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from engine.errors import CorruptModel, ModelNotFound
from engine.formats.mapped_file import DAMAGED

MAX_TEXT_BYTES = 16 << 20
"""The largest real ones (the index of a model of 100,000 tensors) take some 10 MiB; parsed, hostile
JSON takes twenty times its size."""


def read_text(path: Path) -> str:
    """The file as UTF-8. Raises ModelNotFound when there is none, CorruptModel on its content, OSError."""
    if not path.is_file():
        raise ModelNotFound(f"{path} is missing; download the whole folder")
    with path.open("rb") as file:
        data = file.read(MAX_TEXT_BYTES + 1)
    if len(data) > MAX_TEXT_BYTES:
        raise CorruptModel(
            f"{path.name}: is larger than the limit of {MAX_TEXT_BYTES} bytes; {DAMAGED}"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CorruptModel(f"{path.name}: is not UTF-8 at byte {error.start}; {DAMAGED}") from error


def read_json(path: Path) -> Mapping[str, object]:
    """The file's JSON object. Raises as `read_text`, and CorruptModel when it holds none."""
    text = read_text(path)
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise CorruptModel(f"{path.name}: is nested too deeply; {DAMAGED}") from error
    except ValueError as error:
        raise CorruptModel(f"{path.name}: is no JSON ({error}); {DAMAGED}") from error
    if not isinstance(value, dict):
        raise CorruptModel(
            f"{path.name}: must hold an object, it holds {type(value).__name__}; {DAMAGED}"
        )
    return value


def optional_json(path: Path) -> Mapping[str, object]:
    """As `read_json`; an empty mapping when there is no such file."""
    return read_json(path) if path.is_file() else {}
