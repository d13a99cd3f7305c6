"""Small text files beside the weights, read with limits. Used by the thread that opens a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from engine.errors import CorruptModel, ModelNotFound
from engine.formats.mapped_file import DAMAGED


def read_text(path: Path, *, limit: int) -> str:
    """The file as text. Raises OSError, ModelNotFound when there is no such file, and CorruptModel
    when it is larger than `limit` bytes or not UTF-8.
    """
    if not path.is_file():
        raise ModelNotFound(f"{path} is missing; download the whole folder")
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise CorruptModel(f"{path.name}: is larger than the limit of {limit} bytes; {DAMAGED}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CorruptModel(f"{path.name}: is not UTF-8 at byte {error.start}; {DAMAGED}") from error


def read_json(path: Path, *, limit: int) -> Mapping[str, object]:
    """The file's JSON object. Raises as `read_text`, and CorruptModel when it holds none."""
    value = _read_value(path, limit)
    if not isinstance(value, dict):
        raise CorruptModel(
            f"{path.name}: must hold an object, it holds {type(value).__name__}; {DAMAGED}"
        )
    return value


def read_json_list(path: Path, *, limit: int) -> list[object]:
    """The same for a list."""
    value = _read_value(path, limit)
    if not isinstance(value, list):
        raise CorruptModel(
            f"{path.name}: must hold a list, it holds {type(value).__name__}; {DAMAGED}"
        )
    return value


def _read_value(path: Path, limit: int) -> object:
    text = read_text(path, limit=limit)
    try:
        value: object = json.loads(text)
    except RecursionError as error:
        raise CorruptModel(f"{path.name}: is nested too deeply; {DAMAGED}") from error
    except ValueError as error:
        raise CorruptModel(f"{path.name}: is no JSON ({error}); {DAMAGED}") from error
    return value
