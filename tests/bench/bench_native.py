"""Speed of the native kernels on a model file: prefill, decode of several rows, Python's share, time by phase.

Run: python tests/bench/bench_native.py MODEL [--threads N] [--variant NAME] [--kv-type NAME] [--profile].
Not collected by pytest.
Medians, with the best in brackets. For figures that others load disturbs least: chrt -f 50 python ... (as root).
"""
# ruff: noqa: T201 - the table is the point

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from engine.formats.checkpoint import open_checkpoint
from engine.models.registry import find_architecture
from engine.models.spec import parse_spec
from engine.models.weight_map import map_weights
from engine.runtime.stored_weights import StoredWeights
from kernels.api import StepInputs
from kernels.cpu.library import load_library
from kernels.host_memory import reserve
from kernels.kv_layout import PAGE_TOKENS, KvPool, KvType
from kernels.native_backend import NativeBackend, NativeProgram, StepLimits

CONTEXT = 512
PROMPT_CHUNK = 512
BATCHES = (1, 2, 4, 8, 16)
PAGES_EACH = CONTEXT // PAGE_TOKENS + 1


def load(path: Path, backend: NativeBackend, kv_type: KvType) -> tuple[NativeProgram, int]:
    """The model compiled, and its vocabulary."""
    checkpoint = open_checkpoint(path)
    architecture = find_architecture(checkpoint.architecture)
    spec = parse_spec(checkpoint)
    program = architecture.record(spec)
    sources = map_weights(program, architecture, spec, checkpoint)
    layout = backend.page_layout(program, kv_type)
    memory = np.frombuffer(reserve(max(BATCHES) * PAGES_EACH * layout.page_bytes), np.uint8)
    pool = KvPool(layout, memory.reshape(-1, layout.page_bytes))
    start = time.perf_counter()
    weights = StoredWeights(checkpoint, sources, lambda share: None)
    native = backend.compile(program, weights, pool, StepLimits(PROMPT_CHUNK, max(BATCHES)))
    size = sum(tensor.num_bytes for tensor in checkpoint.tensors.values())
    print(
        f"{path.name}: packed in {time.perf_counter() - start:.2f} s, {native.weight_bytes / 1e6:.1f} MB "
        f"for {size / 1e6:.1f} in the file; a page of {PAGE_TOKENS} tokens is {layout.page_bytes:,} bytes"
    )
    checkpoint.close()
    return native, spec.vocab_size


def prompt(tokens: list[int], seat: int) -> StepInputs:
    """A prompt of CONTEXT tokens on the seat's own pages."""
    pages = list(range(seat * PAGES_EACH, (seat + 1) * PAGES_EACH))
    return StepInputs(tokens, list(range(CONTEXT)), [0] * CONTEXT, [pages], [CONTEXT - 1])


def decode(tokens: list[int], rows: int) -> StepInputs:
    """One more token of each of `rows` sequences of CONTEXT tokens."""
    tables = [list(range(s * PAGES_EACH, (s + 1) * PAGES_EACH)) for s in range(rows)]
    seats = list(range(rows))
    return StepInputs(tokens[:rows], [CONTEXT] * rows, seats, tables, seats)


def measure(run: Callable[[], object], times: int) -> tuple[float, float]:
    """Median and least seconds."""
    for _ in range(3):
        run()
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), min(seconds)


def profile(native: NativeProgram, step: StepInputs, times: int) -> None:
    """Milliseconds by kind of phase."""
    runs = []
    for _ in range(times):
        total: Counter[str] = Counter()
        for name, seconds in native.profile(lambda: native.run(step)):
            kind = " ".join(part.split(".")[-2] for part in name.split("+") if "." in part)
            total[kind or name.split(" ")[0]] += seconds * 1e3
        runs.append(total)
    medians = {kind: statistics.median(run[kind] for run in runs) for kind in runs[0]}
    print(f"  {sum(medians.values()):.2f} ms:", end="")
    for kind, milliseconds in sorted(medians.items(), key=lambda item: -item[1]):
        print(f" {kind} {milliseconds:.2f}", end=";")
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--variant")
    parser.add_argument("--kv-type", type=KvType, default=KvType.F16)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    backend = NativeBackend(load_library(arguments.variant), arguments.threads)
    native, vocabulary = load(arguments.model, backend, arguments.kv_type)
    tokens = np.random.default_rng(0).integers(0, vocabulary, CONTEXT).tolist()
    print(
        f"{backend.variant}, {arguments.threads} threads, {arguments.kv_type.value} keys and values, "
        f"{CONTEXT} tokens of context, tokens/s"
    )
    for seat in range(max(BATCHES)):
        native.run(prompt(tokens, seat))
    steps = [("prefill", prompt(tokens, 0), CONTEXT, 5)]
    steps += [(f"decode of {rows}", decode(tokens, rows), rows, 60) for rows in BATCHES]
    for name, step, rows, times in steps:
        median, least = measure(lambda step=step: native.run(step), times)
        print(
            f"{name:<14} {rows / median:7.0f} ({rows / least:5.0f})  {median * 1e3:7.2f} ms a step"
        )
        if arguments.profile:
            profile(native, step, 5 if rows == CONTEXT else 20)
    native.close()
    backend.close()


if __name__ == "__main__":
    main()
