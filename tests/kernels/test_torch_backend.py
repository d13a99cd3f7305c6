"""The torch back end against the reference, over shapes, pool types and mixtures of prompts and single tokens."""

import math

import pytest
import torch

from fakes.tiny_programs import Share, TinyProgram, random_tokens, random_weights, step_of
from kernels import torch_attention, torch_linear, torch_wave_ops
from kernels.api import Activation, Embedding, Linear, RmsNorm
from kernels.reference import round_to_bytes, run_reference
from kernels.torch_attention import AttentionKernel
from kernels.torch_backend import TorchExecutable, compile_program, packing_bytes, weight_bytes
from kernels.torch_step import Limits

LIMITS = Limits(max_rows=300, max_outputs=8, max_positions=640)
SHAPES = {
    "plain": TinyProgram(),
    "one key head": TinyProgram(heads=3, kv_heads=1),
    "a key head for each": TinyProgram(heads=4, kv_heads=4),
    "seven to a key head": TinyProgram(heads=14, kv_heads=2),
    "twenty to a key head": TinyProgram(heads=20, kv_heads=1),
    "odd sizes": TinyProgram(hidden=37, head_dim=10, ffn=53, vocabulary=101),
    "windows": TinyProgram(windows=(3, 300)),
    "biases and head norms": TinyProgram(bias=True, qk_norm=True),
    "gelu": TinyProgram(activation=Activation.GELU_TANH),
    "partly rotated": TinyProgram(rotary_dim=8),
}


def _steps(seed: int) -> list[list[Share]]:
    """A long prompt in uneven chunks beside single tokens of other sequences, on scattered pages."""
    tokens = [random_tokens(640, seed + number) for number in range(4)]
    pages = torch.randperm(60, generator=torch.Generator().manual_seed(seed)).tolist()
    tables = [pages[:20], pages[20:30], pages[30:40], pages[40:60]]
    return [
        [Share(tokens[0], 0, 250, tables[0]), Share(tokens[1], 0, 40, tables[1])],
        [Share(tokens[1], 40, 1, tables[1]), Share(tokens[0], 250, 270, tables[0], samples=False)],
        [
            Share(tokens[3], 0, 17, tables[3]),
            Share(tokens[0], 520, 1, tables[0]),
            Share(tokens[1], 41, 1, tables[1]),
            Share(tokens[2], 0, 5, tables[2]),
        ],
        [Share(tokens[0], 521, 1, tables[0]), Share(tokens[2], 5, 1, tables[2])],
    ]


def _compile(shape: TinyProgram, dtype: torch.dtype = torch.float32) -> TorchExecutable:
    program = shape.record()
    return compile_program(program, random_weights(program), shape.pool(60, dtype), LIMITS)


@pytest.mark.parametrize("name", SHAPES)
def test_logits_and_pool_equal_the_reference(name: str) -> None:
    shape = SHAPES[name]
    executable, pool = _compile(shape), shape.pool(60)
    weights = random_weights(executable.program)
    for shares in _steps(len(name)):
        logits = executable.run(step_of(shares))
        expected = run_reference(executable.program, weights, pool, step_of(shares))
        assert logits.shape == expected.shape
        torch.testing.assert_close(logits, expected, rtol=2e-5, atol=2e-5)
        torch.testing.assert_close(executable.kv_pool, pool, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", SHAPES)
def test_a_pool_of_bytes_says_what_the_reference_rounded_to_them_says(name: str) -> None:
    shape = SHAPES[name]
    executable, pool = _compile(shape, torch.int8), shape.pool(60)
    weights = random_weights(executable.program)
    for shares in _steps(len(name)):
        logits = executable.run(step_of(shares))
        expected = run_reference(
            executable.program, weights, pool, step_of(shares), keep=round_to_bytes
        )
        # A number between two bytes may be rounded to the other one where it was computed in another order.
        assert (logits - expected).norm() / expected.norm() < 2e-3
    step = pool.abs().max() / 126
    torch.testing.assert_close(_decoded(executable), pool, rtol=0, atol=float(step))


def _decoded(executable: TorchExecutable) -> torch.Tensor:
    storage, stored = executable.pool.storage, executable.kv_pool
    groups = enumerate(storage.groups())
    scales = storage.scales(stored)
    parts = [stored[..., group] * scales[..., i : i + 1].float() for i, group in groups]
    return torch.cat(parts, dim=-1)


def test_without_onednn_the_plain_product_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = TinyProgram(bias=True, hidden=37, vocabulary=101)
    packed = _compile(shape)
    monkeypatch.setattr(torch_linear, "has_onednn", lambda: False)
    plain = _compile(shape)
    for shares in _steps(5):
        torch.testing.assert_close(
            plain.run(step_of(shares)), packed.run(step_of(shares)), rtol=2e-5, atol=2e-5
        )


def test_a_float16_pool_costs_a_little_precision_and_no_more() -> None:
    exact, half = _compile(TinyProgram()), _compile(TinyProgram(), torch.float16)
    for shares in _steps(1):
        expected, logits = exact.run(step_of(shares)).clone(), half.run(step_of(shares))
        assert 0 < (logits - expected).norm() / expected.norm() < 2e-3


def test_waves_of_any_size_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = TinyProgram(windows=(0, 300))
    results = []
    for wave_bytes in (1, 200_000, 100_000_000):
        monkeypatch.setattr(AttentionKernel.__init__, "__defaults__", (wave_bytes,))
        executable = _compile(shape)
        results.append([executable.run(step_of(shares)).clone() for shares in _steps(2)])
    for one, two, three in zip(*results, strict=True):
        assert torch.equal(one, two)
        assert torch.equal(one, three)


@pytest.mark.parametrize("size", [1, 5, 32])
@pytest.mark.parametrize("wave_bytes", [1, 300_000])
def test_products_in_batches_of_one_size_say_the_same(
    size: int, wave_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = set()
    run = torch_wave_ops.Product.run

    def watch(product: torch_wave_ops.Product) -> None:
        sizes.add(len(product.out))
        run(product)

    plain = _compile(TinyProgram(windows=(0, 300)))
    monkeypatch.setattr(AttentionKernel.__init__, "__defaults__", (wave_bytes,))
    monkeypatch.setattr(torch_attention, "products_at_once", lambda device: size)
    batched = _compile(TinyProgram(windows=(0, 300)))
    for shares in _steps(2):
        expected = plain.run(step_of(shares)).clone()
        for memory in batched.workspace.scratch._memory.values():
            memory.fill_(math.nan)
        with monkeypatch.context() as patch:
            patch.setattr(torch_wave_ops.Product, "run", watch)
            logits = batched.run(step_of(shares))
        torch.testing.assert_close(logits, expected, rtol=2e-5, atol=2e-5)
    assert sizes == {size}


@pytest.mark.parametrize(
    ("garbage", "dtype"),
    [
        *((number, torch.float32) for number in (math.nan, math.inf, -math.inf, 3e38)),
        *((byte, torch.int8) for byte in (-1, 0x7C, 0x7F)),
    ],
)
def test_what_pages_held_before_never_shows(garbage: float, dtype: torch.dtype) -> None:
    clean, dirty = (_compile(TinyProgram(windows=(0, 300)), dtype) for _ in range(2))
    dirty.kv_pool.fill_(garbage)
    for shares in _steps(3):
        assert torch.equal(clean.run(step_of(shares)), dirty.run(step_of(shares)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.int8])
def test_keys_and_values_that_are_no_numbers_stay_out_of_the_pool(dtype: torch.dtype) -> None:
    program = TinyProgram().record()
    weights = random_weights(program)
    weights["0.v"] = weights["0.v"] * 1e30
    weights["0.k"] = weights["0.k"] * torch.nan
    kv_pool = TinyProgram().pool(60, dtype)
    executable = compile_program(program, weights, kv_pool, LIMITS)
    executable.run(step_of(_steps(4)[0]))
    pool = executable.kv_pool
    if dtype is torch.int8:
        pool = _decoded(executable)
    assert torch.isfinite(pool).all()
    assert pool[:, 0, 1].abs().max() == executable.pool.storage.limit
    assert (pool[:, 0, 0] == 0).all()


def test_a_step_larger_than_compiled_for_is_refused() -> None:
    executable = _compile(TinyProgram())
    tokens, table = random_tokens(700, 0), list(range(22))
    for share, name in (
        (Share(tokens, 0, 301, table), "301 rows"),
        (Share(tokens, 640, 1, table), "641 positions"),
        (Share(tokens, 0, 0, table, samples=False), "0 rows"),
    ):
        with pytest.raises(ValueError, match=name):
            executable.run(step_of([share]))
    with pytest.raises(ValueError, match="9 outputs"):
        executable.run(step_of([Share(tokens, 0, 1, table)] * 9))


def test_each_weight_is_read_once_and_counted_as_it_is_kept() -> None:
    shape = TinyProgram(bias=True, qk_norm=True)
    program = shape.record()
    weights = _CountingWeights(random_weights(program))
    compile_program(program, weights, shape.pool(), LIMITS)
    norms = [op.weight.name for op in program.ops if isinstance(op, RmsNorm)]
    assert all(count == max(1, norms.count(name)) for name, count in weights.reads.items())
    kept = [op.weight for op in program.ops if isinstance(op, Linear | RmsNorm)]
    kept += [op.table for op in program.ops if isinstance(op, Embedding)]
    assert weight_bytes(program) == 4 * sum(math.prod(ref.shape) for ref in kept)
    assert packing_bytes(program) == 2 * 4 * (shape.heads + 2 * shape.kv_heads) * 16 * shape.hidden


class _CountingWeights(dict[str, torch.Tensor]):
    def __init__(self, weights: dict[str, torch.Tensor]) -> None:
        super().__init__(weights)
        self.reads = dict.fromkeys(weights, 0)

    def __getitem__(self, name: str) -> torch.Tensor:
        self.reads[name] += 1
        return super().__getitem__(name)
