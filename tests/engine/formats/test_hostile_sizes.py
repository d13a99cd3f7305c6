"""Files made to cost time and memory, as large as the readers' limits let them be.

Each is opened in a process of its own that may take 1 GiB. Where the bytes can be zeros the file is
sparse, so that the test costs little too.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.formats import gguf, gguf_values, safetensors
from fakes.fuzz.run import LIMIT_S
from fakes.gguf_bytes import ARRAY, STRING, U8, RawGguf, RawKey, RawTensor, array, text

ROOT = Path(__file__).resolve().parents[3]
OPEN_WITHIN_LIMITS = """
import sys, time
from pathlib import Path
from engine.errors import EngineError
from engine.formats.checkpoint import open_checkpoint
from fakes.fuzz.worker import limit_memory
limit_memory()
started = time.process_time()
try:
    open_checkpoint(Path(sys.argv[1]))
    outcome = "ok"
except EngineError as error:
    outcome = type(error).__name__
sys.stdout.write(f"{outcome} {time.process_time() - started}")
"""


def gguf_with_zeros(path: Path, key: RawKey, num_zeros: int) -> Path:
    """A file whose last metadata value goes on as zeros."""
    head = RawGguf(keys=[RawKey(b"general.architecture", STRING, text("llama")), key]).build()
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + num_zeros)
    return path


def many_strings(folder: Path) -> Path:
    count = gguf_values.MAX_ITEMS
    key = RawKey(b"a", ARRAY, array(STRING, [], count=count))
    return gguf_with_zeros(folder / "model.gguf", key, 8 * count)


def one_huge_array(folder: Path) -> Path:
    count = gguf_values.MAX_HEADER_BYTES - 1000
    return gguf_with_zeros(
        folder / "model.gguf", RawKey(b"a", ARRAY, array(U8, [], count=count)), count
    )


def one_huge_string(folder: Path) -> Path:
    size = gguf_values.MAX_HEADER_BYTES - 1000
    return gguf_with_zeros(
        folder / "model.gguf", RawKey(b"a", STRING, struct.pack("<Q", size)), size
    )


def many_inner_arrays(folder: Path) -> Path:
    count = gguf_values.MAX_ITEMS // gguf_values.INNER_ARRAY_ITEMS
    key = RawKey(b"a", ARRAY, array(ARRAY, [array(U8, [])] * count))
    return gguf_with_zeros(folder / "model.gguf", key, 0)


def many_keys_and_tensors(folder: Path) -> Path:
    keys = [RawKey(b"general.architecture", STRING, text("llama"))]
    keys += [RawKey(b"%d" % i, U8, b"\0") for i in range(gguf.MAX_KEYS - 1)]
    tensors = [RawTensor(b"%d" % i, [1], offset=32 * i) for i in range(gguf.MAX_TENSORS)]
    (folder / "model.gguf").write_bytes(
        RawGguf(keys, tensors, data=bytes(32 * len(tensors))).build()
    )
    return folder / "model.gguf"


def many_empty_lists(folder: Path) -> Path:
    """The kind of JSON that takes the most memory for its size."""
    sizes = {
        "config.json": safetensors.MAX_CONFIG_BYTES,
        safetensors.INDEX_FILE: safetensors.MAX_INDEX_BYTES,
    }
    for name, size in sizes.items():
        lists = b"[]," * ((size - 100) // 3)
        (folder / name).write_bytes(b'{"model_type": "llama", "weight_map": [' + lists + b"0]}")
    return folder


def many_small_tensors(folder: Path) -> Path:
    count = safetensors.MAX_HEADER_BYTES // 80
    header = {
        f"{i:x}": {"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]}
        for i in range(count)
    }
    encoded = json.dumps(header, separators=(",", ":")).encode()
    assert len(encoded) < safetensors.MAX_HEADER_BYTES
    (folder / "config.json").write_text('{"model_type": "llama"}')
    with (folder / safetensors.SINGLE_FILE).open("wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded)
        file.truncate(8 + len(encoded) + 4 * count)
    return folder


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (many_strings, "ok"),
        (one_huge_array, "ok"),
        (one_huge_string, "ok"),
        (many_inner_arrays, "ok"),
        (many_keys_and_tensors, "ok"),
        (many_small_tensors, "ok"),
        (many_empty_lists, "CorruptModel"),
    ],
)
def test_the_costliest_files_stay_within_two_seconds_and_a_gibibyte(
    tmp_path: Path, make: Callable[[Path], Path], expected: str
) -> None:
    command = [sys.executable, "-c", OPEN_WITHIN_LIMITS, str(make(tmp_path))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    outcome, seconds = done.stdout.split() or (done.stderr, "0")
    assert outcome == expected
    assert float(seconds) < LIMIT_S
