"""Loading the native kernels, choosing a variant, and using what was closed: clear errors, never a crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fakes.native_programs import MODELS, record
from fakes.native_rig import VARIANTS, compiled, needs_kernels, one_page_each
from kernels.api import AttentionShape, Recorder, WeightRef
from kernels.cpu.library import NativeError, NativeUnavailable, ThreadTeam, load_library
from kernels.kv_layout import KvPool, page_layout
from kernels.native_backend import NativeBackend, StepLimits


def test_kernels_that_were_not_built_are_named_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(NativeUnavailable, match=r"not built .* install one .* install Layby again"):
        load_library(path=tmp_path / "layby_cpu.so")


def test_a_damaged_library_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "layby_cpu.so"
    path.write_bytes(b"no library")
    with pytest.raises(NativeUnavailable, match=r"layby_cpu.so cannot be loaded"):
        load_library(path=path)


@needs_kernels
def test_the_best_variant_is_chosen_unless_one_is_named() -> None:
    assert load_library().variant == VARIANTS[0]
    assert "portable" in VARIANTS
    assert load_library("portable").variant == "portable"
    with pytest.raises(
        NativeUnavailable, match=r"no kernel variant here is called sse2; choose one of .*portable"
    ):
        load_library("sse2")


@needs_kernels
@pytest.mark.parametrize("threads", [0, -1])
def test_a_team_has_at_least_one_thread(threads: int) -> None:
    library = load_library()
    with pytest.raises(ValueError, match="at least 1 thread"):
        ThreadTeam(library, threads)
    with ThreadTeam(library, 2) as team, pytest.raises(ValueError, match="at least 1 thread"):
        team.resize(threads)


NO_MORE_THREADS = """
import resource
from kernels.cpu.library import NativeError, ThreadTeam, load_library
library = load_library()
with ThreadTeam(library, 2) as team:
    pages = int(open("/proc/self/statm").read().split()[0])
    most = pages * resource.getpagesize() + (256 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    for _ in range(2):
        try:
            team.resize(1024)
        except NativeError as error:
            print(team.threads, error)
"""


@needs_kernels
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's here")
def test_threads_that_the_system_does_not_start_are_an_error_and_leave_the_team_as_it_was() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_MORE_THREADS], capture_output=True, text=True, check=True
    )
    first, second = done.stdout.splitlines()
    assert first == second
    assert first.startswith("2 ")


@needs_kernels
def test_what_is_closed_says_so() -> None:
    program, weights = record(MODELS["llama"])
    with compiled(program, weights.source()) as native:
        native.team.close()
        native.team.close()
        with pytest.raises(NativeError, match="closed"):
            native.run(one_page_each([1]))
    with compiled(program, weights.source()) as native:
        native.close()
        native.close()
        with pytest.raises(NativeError, match="closed"):
            native.run(one_page_each([1]))


@needs_kernels
def test_a_weight_of_another_shape_is_refused_by_name() -> None:
    program, weights = record(MODELS["llama"])
    weights.add("0.q", (64, 256), "Q4_1")
    with (
        pytest.raises(ValueError, match=r"0\.q is \(64, 256\), the model expects \(256, 256\)"),
        compiled(program, weights.source()),
    ):
        pass


def test_ops_that_disagree_about_a_layers_heads_are_refused() -> None:
    recorder = Recorder()
    x = recorder.embedding(WeightRef("table", (8, 64)))
    recorder.store_kv(x, x, AttentionShape(0, heads=2, kv_heads=2, head_dim=32, scale=1.0))
    out = recorder.attention(x, AttentionShape(0, heads=4, kv_heads=4, head_dim=16, scale=1.0))
    with pytest.raises(
        ValueError, match="layer 0 stores 2 heads of 32, but attention reads 4 of 16"
    ):
        page_layout(recorder.finish(out))


@needs_kernels
def test_a_pool_of_another_layout_is_refused() -> None:
    program, weights = record(MODELS["llama"])
    layout = page_layout(program)
    backend = NativeBackend(load_library(), 1)
    narrow = np.zeros((4, layout.page_bytes - 64), np.uint8)
    strided = np.zeros((8, layout.page_bytes), np.uint8)[::2]
    none = np.zeros((0, layout.page_bytes), np.uint8)
    for pages in (narrow, strided, none):
        pool = KvPool(layout, pages)
        with pytest.raises(ValueError, match=f"pages of {layout.page_bytes} bytes side by side"):
            backend.compile(program, weights.source(), pool, StepLimits(8, 8))
    backend.close()
