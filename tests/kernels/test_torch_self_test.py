"""The check at load: silent where every op keeps the rule, and naming the one that does not."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from fakes.tiny_programs import TinyProgram, random_weights
from kernels import torch_rows, torch_self_test, torch_wave_ops
from kernels.torch_backend import TorchExecutable, compile_program
from kernels.torch_linear import LinearOp
from kernels.torch_self_test import find_inexact_ops
from kernels.torch_step import Limits


def _compile(
    max_rows: int = 256, max_outputs: int = 4, pages: int = 30, dtype: torch.dtype = torch.float32
) -> TorchExecutable:
    shape = TinyProgram(windows=(0, 64))
    program = shape.record()
    limits = Limits(max_rows, max_outputs, max_positions=min(900, pages * 32))
    return compile_program(program, random_weights(program), shape.pool(pages, dtype), limits)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int8])
@pytest.mark.parametrize(
    ("max_rows", "max_outputs", "pages"), [(256, 4, 30), (16, 1, 1), (1, 1, 3)]
)
def test_this_machine_keeps_the_rule(
    max_rows: int, max_outputs: int, pages: int, dtype: torch.dtype
) -> None:
    executable = _compile(max_rows, max_outputs, pages, dtype)
    threads = torch.get_num_threads()
    assert find_inexact_ops(executable) == ()
    assert torch.get_num_threads() == threads
    assert not executable.kv_pool.any()


@pytest.mark.parametrize(("max_rows", "pages"), [(256, 30), (1, 1)])
def test_what_a_device_has_to_prove_holds_here_too(
    max_rows: int, pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_self_test, "_is_device", lambda executable: True)
    assert find_inexact_ops(_compile(max_rows, 4, pages)) == ()


class _LeaksNeighbours:
    """Adds a trace of the whole tile to each row."""

    def __init__(self, multiply: Callable[[Tensor], Tensor]) -> None:
        self._multiply = multiply

    def multiply(self, tile: Tensor) -> Tensor:
        return self._multiply(tile) + 1e-6 * tile.sum()


def test_a_linear_layer_that_heeds_its_neighbours_is_named() -> None:
    executable = _compile()
    kernels = [one.kernel for one in executable.ops if isinstance(one.kernel, LinearOp)]
    for kernel in kernels:
        if kernel.out.width == 160:
            kernel.weight = _LeaksNeighbours(kernel.weight.multiply)
    assert find_inexact_ops(executable) == ("linear 48 -> 160",)


def test_an_activation_that_depends_on_the_place_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        torch_rows, "_pieces", lambda x: [x.narrow(0, 0, 5), x.narrow(0, 5, len(x) - 5) * 1]
    )
    assert find_inexact_ops(_compile()) == ("silu 80",)


def test_attention_that_heeds_what_is_hidden_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_wave_ops.Fill, "run", lambda self: None)
    monkeypatch.setattr(torch_wave_ops.Keep, "run", lambda self: None)
    names = find_inexact_ops(_compile())
    assert names == ("attention 6/2 x 16", "attention 6/2 x 16, window 64")
