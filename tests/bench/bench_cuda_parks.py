"""Parks on a CUDA device: speed of the copies, cost of pinning, and what other requests notice, async against sync.

Run: python tests/bench/bench_cuda_parks.py [--context TOKENS] [--cycles N]. Not collected by pytest. The model has the
sizes of one of 135 million parameters and random weights; no files are needed. Medians, ratios in one run.
"""
# ruff: noqa: T201 - the table is the point

from __future__ import annotations

import argparse
import queue
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from engine.api import (
    Device,
    EngineEvent,
    EnginePort,
    KvType,
    LoadModel,
    LoadOptions,
    Origin,
    Parked,
    Request,
    Restored,
    SamplingParams,
    TokenDelta,
    TokenIds,
)
from engine.core.parked import CopyWay, PageCopy, SavedPage
from engine.factory import create_engine
from engine.runs import ParkNow, ResumeNext
from engine.runtime.copies import HostBuffer
from engine.runtime.cuda_lane import CudaLane
from engine.runtime.device_copies import DeviceCopies
from engine.runtime.messages import CopyDone
from engine.runtime.page_copier import PageCopier, choose_copies
from fakes.listening import Ear
from fakes.tiny_files import write_tiny_folder
from fakes.tiny_model import SMALL_SHAPE
from kernels.page_copy import NumpyMover

MIB = 1 << 20
PAGE_BYTES = 30 * 2 * 32 * 192 * 2
"""A page of the model with float16 keys and values."""
POOL_PAGES = 2048
DEVICE = torch.device("cuda")
WINDOW_S = 0.3
"""What others notice of a park is looked for within so long after it was asked for."""
GROWTH_TOKENS = 8192
"""More than anybody generates while this runs."""
BATCHES = (1, 2, 3, 4, 8, 15, 17, 24, 48, 64, 96, 128)
NEIGHBOURS = ("a", "b", "c")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--context", type=int, default=8192, help="tokens of the one that is parked"
    )
    parser.add_argument("--cycles", type=int, default=10)
    arguments = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    show_bits()
    bench_pinning()
    bench_copies()
    with tempfile.TemporaryDirectory() as name:
        folder = write_tiny_folder(
            Path(name),
            shape=SMALL_SHAPE,
            dtype="F16",
            context_tokens=arguments.context + GROWTH_TOKENS,
        )
        bench_engine(folder, arguments.context, arguments.cycles)


# --- products


def show_bits() -> None:
    """For which sizes a product's first rows have other bits than at the sizes that the back end keeps to."""
    random = torch.Generator(DEVICE).manual_seed(0)
    for head_dim in (64, 128):
        keys = torch.randn(128, 256, head_dim, generator=random, device=DEVICE).transpose(1, 2)
        values = torch.randn(128, 256, head_dim, generator=random, device=DEVICE)
        for name, b in (("scores", keys), ("means", values)):
            a = torch.randn(128, 16, b.shape[1], generator=random, device=DEVICE)
            usual = torch.bmm(a[:32], b[:32])[0]
            others = [n for n in BATCHES if not torch.equal(torch.bmm(a[:n], b[:n])[0], usual)]
            shared = torch.bmm(a[:32], b[:1].expand(32, -1, -1))[0]
            same = "the same" if torch.equal(shared, usual) else "OTHERS"
            print(
                f"{name} of heads of {head_dim}: other bits than in batches of 32 in those of {others}; "
                f"with one matrix for all of a batch {same}"
            )
    for num_in, num_out in ((576, 1536), (4096, 4096), (4096, 28672)):
        weight = torch.randn(num_out, num_in, generator=random, device=DEVICE).t()
        x = torch.randn(256, num_in, generator=random, device=DEVICE)
        usual = torch.mm(x[:16], weight)
        others = [n for n in BATCHES if not torch.equal(torch.mm(x[:n], weight)[:1], usual[:1])]
        turned = torch.mm(x[:16].flip(0), weight).flip(0)
        same = "the same" if torch.equal(turned, usual) else "OTHERS"
        print(
            f"linear {num_in} -> {num_out}: other bits than of 16 rows of {others}; turned round {same}"
        )


# --- copies alone


def bench_pinning() -> None:
    """What a first park costs the engine thread beside the copy, and whether it waits for the device."""
    copies = DeviceCopies(
        torch.zeros(4, PAGE_BYTES, dtype=torch.uint8, device=DEVICE), CudaLane(DEVICE)
    )
    for mib in (16, 64, 256):
        slots = mib * MIB // PAGE_BYTES
        made, freed = [], []
        for _ in range(3):
            start = time.perf_counter()
            buffer = copies.make_buffer(slots)
            made.append(time.perf_counter() - start)
            assert buffer.goes_beside
            start = time.perf_counter()
            copies.free_buffer(buffer)
            freed.append(time.perf_counter() - start)
        print(f"pin {mib:>4} MiB {_ms(made)}, unpin {_ms(freed)}")
    torch.cuda._sleep(400_000_000)
    start = time.perf_counter()
    buffer = copies.make_buffer(16 * MIB // PAGE_BYTES)
    middle = time.perf_counter()
    copies.free_buffer(buffer)
    end = time.perf_counter()
    torch.cuda.synchronize()
    busy = time.perf_counter() - start
    print(
        f"pin 16 MiB while the device is busy for {busy * 1e3:.0f} ms: {(middle - start) * 1e3:.1f} ms, "
        f"unpin {(end - middle) * 1e3:.1f} ms"
    )
    print(f"pin 256 MiB on another thread: worst launch beside it {_worst_launch(copies):.2f} ms")


def _worst_launch(copies: DeviceCopies) -> float:
    """Milliseconds that a small kernel's launch takes at most while another thread pins memory."""
    values, slots = torch.zeros(8, device=DEVICE), 256 * MIB // PAGE_BYTES
    buffers: list[HostBuffer] = []
    thread = threading.Thread(target=lambda: buffers.append(copies.make_buffer(slots)))
    worst = 0.0
    thread.start()
    while thread.is_alive():
        start = time.perf_counter()
        values.add_(1)
        worst = max(worst, time.perf_counter() - start)
    thread.join()
    copies.free_buffer(buffers[0])
    return worst * 1e3


def bench_copies() -> None:
    """Park and restore of scattered pages against one plain transfer of as many bytes."""
    pool = torch.randint(0, 256, (POOL_PAGES, PAGE_BYTES), dtype=torch.uint8, device=DEVICE)
    done: queue.SimpleQueue[CopyDone] = queue.SimpleQueue()
    beside = PageCopier(choose_copies(pool, NumpyMover(), is_async=True), done.put)
    within = PageCopier(choose_copies(pool, NumpyMover(), is_async=False), done.put)
    random = np.random.default_rng(0)
    print(f"copies of scattered pages of {PAGE_BYTES:,} bytes, GB/s (time on the engine thread)")
    for count in (8, 64, 512):
        pages = random.permutation(POOL_PAGES)[:count].tolist()
        size = count * PAGE_BYTES
        plain = _plain_speeds(size)
        line = f"{size / MIB:6.0f} MiB  plain out {plain[0]:5.1f} in {plain[1]:5.1f} "
        for way in CopyWay:
            for name, copier, must_land in (("async", beside, False), ("sync", within, True)):
                held, whole = [], []
                for _ in range(7):
                    order = _order(way, pages, must_land=must_land)
                    torch.cuda.synchronize()
                    start = time.perf_counter()
                    assert copier.carry_out(order)
                    held.append(time.perf_counter() - start)
                    if not must_land:
                        assert done.get(timeout=60).is_made
                    torch.cuda.synchronize()
                    whole.append(time.perf_counter() - start)
                speed = size / statistics.median(whole) / 1e9
                line += f"| {name} {way.value} {speed:5.1f} ({_ms(held)}) "
        print(line)
    beside.close()
    within.close()


def _order(way: CopyWay, pages: list[int], *, must_land: bool) -> PageCopy:
    saved = tuple(SavedPage(1, slot) for slot in range(len(pages)))
    return PageCopy(
        1, way, ("r",), tuple(pages), saved, len(pages) * PAGE_BYTES, must_land=must_land
    )


def _plain_speeds(size: int) -> tuple[float, float]:
    """GB/s of one transfer between pinned and device memory, out and in."""
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    device = torch.empty(size, dtype=torch.uint8, device=DEVICE)
    speeds = []
    for target, source in ((host, device), (device, host)):
        times = []
        for _ in range(5):
            torch.cuda.synchronize()
            start = time.perf_counter()
            target.copy_(source, non_blocking=True)
            torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
        speeds.append(size / min(times) / 1e9)
    return speeds[0], speeds[1]


# --- the engine


@dataclass(slots=True)
class Watch:
    """When which token came, and how often the long request went and came back. Written on the engine thread."""

    tokens: dict[str, list[float]] = field(default_factory=dict)
    moves: Counter[type] = field(default_factory=Counter)

    def hear(self, events: tuple[EngineEvent, ...]) -> None:
        now = time.perf_counter()
        for event in events:
            if isinstance(event, TokenDelta):
                self.tokens.setdefault(event.request_id, []).append(now)
            else:
                self.moves[type(event)] += 1

    def gaps(self, start: float, end: float) -> list[float]:
        """Seconds between two tokens of one neighbour, for the later ones that came in [start, end)."""
        found = []
        for request_id in NEIGHBOURS:
            times = self.tokens.get(request_id, [])
            found += [b - a for a, b in pairwise(times) if start <= b < end]
        return found

    def wait(self, fits: Callable[[Watch], bool]) -> None:
        """Looks only now and then: who waits on a lock takes part in what is measured."""
        end = time.perf_counter() + 120
        while not fits(self):
            assert time.perf_counter() < end, f"it did not come; moves {self.moves}"
            time.sleep(0.01)


def bench_engine(folder: Path, context: int, cycles: int) -> None:
    """Decode speed, then the gaps of three requests while a fourth of `context` tokens is parked and restored."""
    for is_async in (False, True, False, True):
        engine = create_engine()
        try:
            _load(engine, folder, context, is_async=is_async)
            _bench_gaps(engine, context, cycles)
        finally:
            engine.shutdown()


def _load(engine: EnginePort, folder: Path, context: int, *, is_async: bool) -> None:
    ear = Ear(engine)
    options = LoadOptions(
        pool_tokens=2 * context + 4 * GROWTH_TOKENS,
        parallel=4,
        kv_type=KvType.F32,
        device=Device.CUDA,
        preempt_async=is_async,
    )
    start = time.perf_counter()
    engine.control(LoadModel(path=folder, name="small", options=options))
    ear.wait_ready()
    ear.close()
    snapshot = engine.snapshot()
    assert snapshot.options is not None
    print(
        f"{'async' if snapshot.options.preempt_async else 'sync'}: loaded in {time.perf_counter() - start:.1f} s"
        + (f", NOT EXACT: {snapshot.inexact_ops}" if snapshot.inexact_ops else ", exact")
    )


def _bench_gaps(engine: EnginePort, context: int, cycles: int) -> None:
    watch = Watch()
    engine.subscribe(watch.hear)
    engine.submit(_ask("a", 16))
    alone = _tokens_per_s(watch, ("a",))
    for request_id in NEIGHBOURS[1:]:
        engine.submit(_ask(request_id, 16))
    together = _tokens_per_s(watch, NEIGHBOURS)
    start = time.perf_counter()
    engine.submit(_ask("long", context))
    watch.wait(lambda w: len(w.tokens.get("long", ())) > 20)
    prompt_s = watch.tokens["long"][0] - start
    start = time.perf_counter()
    time.sleep(2.0)
    usual = watch.gaps(start, start + 2.0)
    p99 = float(np.quantile(usual, 0.99))
    print(
        f"  decode of 1: {alone:.0f} tok/s, of 3: {together:.0f}; prompt {context / prompt_s:.0f} tok/s beside them; "
        f"usual gap {_ms(usual)}, p99 {p99 * 1e3:.2f} ms, worst {max(usual) * 1e3:.2f} ms"
    )
    worst: dict[str, list[float]] = {"park": [], "restore": []}
    for _ in range(cycles):
        worst["park"].append(_worst_gap(engine, watch, ParkNow(request_id="long"), Parked))
        worst["restore"].append(_worst_gap(engine, watch, ResumeNext(request_id="long"), Restored))
    for what, gaps in worst.items():
        first, median = gaps[0], statistics.median(gaps[1:])
        print(
            f"  {what:<7} of {context * PAGE_BYTES * 2 / 32 / MIB:.0f} MiB: worst gap of others {median * 1e3:.2f} ms, "
            f"{median / p99:.2f} of the usual p99; the first {first * 1e3:.1f} ms"
        )


def _worst_gap(
    engine: EnginePort, watch: Watch, command: ParkNow | ResumeNext, kind: type
) -> float:
    heard, start = watch.moves[kind], time.perf_counter()
    engine.control(command)
    time.sleep(WINDOW_S)
    watch.wait(lambda w: w.moves[kind] > heard and w.tokens["a"][-1] >= start + WINDOW_S)
    return max(watch.gaps(start, start + WINDOW_S))


def _ask(request_id: str, prompt_tokens: int) -> Request:
    ids = np.random.default_rng(len(request_id)).integers(3, 270, prompt_tokens).tolist()
    return Request(
        request_id=request_id,
        origin=Origin.API,
        prompt=TokenIds(ids=tuple(ids)),
        sampling=SamplingParams(temperature=0),
        ignore_eos=True,
    )


def _tokens_per_s(watch: Watch, request_ids: tuple[str, ...]) -> float:
    """All of them together, over a second and a half."""
    watch.wait(lambda w: all(len(w.tokens.get(one, ())) > 5 for one in request_ids))
    start = time.perf_counter()
    time.sleep(1.5)
    end = time.perf_counter()
    return sum(start <= t < end for one in request_ids for t in watch.tokens[one]) / (end - start)


def _ms(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1e3:.2f} ms"


if __name__ == "__main__":
    main()
