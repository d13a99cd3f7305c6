"""Which ops are joined into one phase, and that programs of any shape still mean what they say."""

from __future__ import annotations

import random

import numpy as np
import pytest

from fakes.native_programs import MODELS, record
from fakes.native_rig import (
    ModelWeights,
    compiled,
    needs_kernels,
    reference,
    rows_program,
)
from kernels.api import (
    Activation,
    AttentionShape,
    Buffer,
    Embedding,
    Extent,
    GatedActivation,
    PagedAttention,
    Program,
    Recorder,
    RotaryShape,
    StepInputs,
    TakeOutputs,
    WeightRef,
)
from kernels.kv_layout import KvType
from kernels.native_lowering import (
    GatedLinearPhase,
    HeadsPhase,
    Kind,
    LinearPhase,
    Lowered,
    Sink,
    lower,
)
from kernels.native_memory import plan_memory

W64 = WeightRef("w", (64, 64))
NO_FLOATS: frozenset[str] = frozenset()


def kinds_of(lowered: Lowered) -> list[type]:
    return [type(phase) for phase in lowered.phases]


@pytest.mark.parametrize("name", MODELS)
def test_a_layer_takes_six_phases(name: str) -> None:
    program, weights = record(MODELS[name])
    floats = frozenset(n for n, w in weights.tensors.items() if w.storage in ("F16", "BF16"))

    lowered = lower(program, floats)

    layer = [LinearPhase, HeadsPhase, PagedAttention, LinearPhase, GatedLinearPhase, LinearPhase]
    assert kinds_of(lowered) == [Embedding, *layer, *layer, LinearPhase]
    qkv, heads, attention, _, gated, down = lowered.phases[1:7]
    assert [op.weight.name for op in qkv.parts] == ["0.q", "0.k", "0.v"]
    assert qkv.input.norm.weight.name == "0.attn_norm"
    assert [s.sink for s in heads.streams] == [Sink.ROWS, Sink.KEYS, Sink.VALUES]
    assert [s.norm is not None for s in heads.streams] == [MODELS[name].head_norms] * 2 + [False]
    assert lowered.kinds[gated.op.out.index] is down.input.kind
    assert (attention.out.index in lowered.kinds) == (MODELS[name].head_dim % 32 == 0)
    head = lowered.phases[-1].input
    assert head.gathers
    assert head.norm.weight.name == "norm"
    assert head.extent is Extent.OUTPUTS


def test_a_norm_before_the_choice_of_rows_is_joined_too() -> None:
    recorder = Recorder()
    x = recorder.embedding(W64)
    h = recorder.take_outputs(recorder.rms_norm(x, WeightRef("n", (64,)), epsilon=1e-6))
    lowered = lower(recorder.finish(recorder.linear(h, WeightRef("head", (9, 64)))), NO_FLOATS)
    assert kinds_of(lowered) == [Embedding, LinearPhase]
    assert lowered.phases[1].input.gathers
    assert lowered.phases[1].input.norm is not None


def test_a_norm_that_others_read_stays_a_phase() -> None:
    recorder = Recorder()
    x = recorder.embedding(W64)
    h = recorder.rms_norm(x, WeightRef("n", (64,)), epsilon=1e-6)
    out = recorder.gated_activation(recorder.linear(h, W64), h, Activation.SILU)
    lowered = lower(recorder.finish(recorder.take_outputs(out)), NO_FLOATS)
    assert kinds_of(lowered)[1:] == [HeadsPhase, LinearPhase, GatedActivation, TakeOutputs]


def test_a_gate_that_is_read_again_is_not_joined() -> None:
    recorder = Recorder()
    x = recorder.embedding(W64)
    gate = recorder.linear(x, W64)
    up = recorder.linear(x, WeightRef("u", (64, 64)))
    out = recorder.gated_activation(gate, up, Activation.SILU)
    out = recorder.linear(out, WeightRef("d", (64, 64)), residual=gate)
    lowered = lower(recorder.finish(recorder.take_outputs(out)), NO_FLOATS)
    assert kinds_of(lowered)[:3] == [Embedding, LinearPhase, GatedActivation]


def test_weights_of_two_kinds_do_not_share_a_phase() -> None:
    recorder = Recorder()
    x = recorder.embedding(W64)
    a, b = (
        recorder.linear(x, WeightRef("a", (64, 64))),
        recorder.linear(x, WeightRef("b", (64, 64))),
    )
    out = recorder.gated_activation(a, b, Activation.SILU)
    lowered = lower(recorder.finish(recorder.take_outputs(out)), frozenset({"b"}))
    assert [p.input.kind for p in lowered.phases if isinstance(p, LinearPhase)] == [
        Kind.QUANTIZED,
        Kind.FLOAT,
    ]


def test_layers_share_memory_and_the_residual_is_added_in_place() -> None:
    program, _ = record(MODELS["llama"])
    lowered = lower(program, NO_FLOATS)

    plan = plan_memory(program, lowered)

    residuals = {
        plan.slot_of[phase.parts[0].out.index]
        for phase in lowered.phases
        if isinstance(phase, LinearPhase) and phase.parts[0].residual is not None
    }
    assert len(residuals) == 1
    assert len(plan.slots) < 12
    big, _ = record(MODELS["llama"].__class__("Q4_1", layers=7))
    assert len(plan_memory(big, lower(big, NO_FLOATS)).slots) == len(plan.slots)


class RandomProgram:
    """Ops in any order over values of one width, each reading any values there are."""

    WIDTH = 64

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.weights = ModelWeights(seed)
        rows = np.random.default_rng(seed).standard_normal((40, self.WIDTH)).astype(np.float32)
        self.recorder, first = rows_program(self.weights, rows)
        self.values = [first]
        self.layers = 0

    def any(self) -> Buffer:
        return self.dice.choice(self.values[-4:])

    def weight(self, *shape: int) -> WeightRef:
        name = f"w{len(self.weights.tensors)}"
        storage = self.dice.choice(["F32", "F32", "BF16"]) if len(shape) > 1 else "F32"
        return self.weights.add(name, shape, storage)

    def norm(self) -> Buffer:
        size = self.dice.choice([64, 64, 32, 16])
        return self.recorder.rms_norm(self.any(), self.weight(size), epsilon=1e-3)

    def linear(self) -> Buffer:
        residual = self.dice.choice([None, self.any()])
        bias = self.dice.choice([None, self.weight(self.WIDTH)])
        weight = self.weight(self.WIDTH, self.WIDTH)
        return self.recorder.linear(self.any(), weight, bias=bias, residual=residual)

    def gated(self) -> Buffer:
        return self.recorder.gated_activation(self.any(), self.any(), Activation.SILU)

    def rotary(self) -> Buffer:
        heads = self.dice.choice([1, 2, 4])
        dim = self.WIDTH // heads
        return self.recorder.rotary(self.any(), RotaryShape(heads, dim, 4, (1.0, 0.3)))

    def attention(self) -> Buffer:
        heads = self.dice.choice([1, 2, 4])
        dim = self.WIDTH // heads
        shape = AttentionShape(self.layers, heads, heads, dim, dim**-0.5)
        self.layers += 1
        self.recorder.store_kv(self.any(), self.any(), shape)
        if self.dice.random() < 0.5:
            self.values.append(self.linear())
        return self.recorder.attention(self.any(), shape)

    def build(self, num_ops: int) -> Program:
        makers = [self.norm, self.linear, self.linear, self.gated, self.rotary, self.attention]
        for _ in range(num_ops):
            self.values.append(self.dice.choice(makers)())
        last = self.dice.choice(self.values[-3:])
        out = self.recorder.take_outputs(last)
        if self.dice.random() < 0.5:
            out = self.recorder.rms_norm(out, self.weight(self.WIDTH), epsilon=1e-3)
            out = self.recorder.linear(out, self.weight(self.WIDTH, self.WIDTH))
        return self.recorder.finish(out)


@needs_kernels
@pytest.mark.parametrize("seed", range(40))
def test_any_program_means_what_it_says(seed: int) -> None:
    made = RandomProgram(seed)
    program = made.build(num_ops=3 + seed % 13)
    steps = [
        StepInputs([*range(5)], [0] * 5, [*range(5)], [[s] for s in range(5)], [*range(5)]),
        StepInputs(list(range(20)), list(range(20)), [0] * 20, [[3]], [19, 4, 0]),
    ]
    for step in steps:
        with compiled(program, made.weights.source(), kv_type=KvType.F32) as native:
            expected = reference(program, made.weights.source()).run(step)
            scale = np.abs(expected).max()
            np.testing.assert_allclose(native.run(step), expected, rtol=1e-3, atol=1e-2 * scale)
