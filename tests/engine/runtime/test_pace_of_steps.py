"""The real engine on a virtual clock: beside replies a prompt is read in small parts, and says the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from engine.api import TokenDelta, TokenIds
from engine.core.types import StepRow
from engine.runtime.engine import Engine
from engine.runtime.model_runner import ModelRunner
from fakes.listening import Ear, run_all, submitted_until
from fakes.parking_rig import ask, load
from fakes.tiny_files import write_tiny_gguf
from kernels.wishes import Wish

STEP_S, TOKEN_S = 0.02, 0.001
WORTH_HALF_A_STEP = int(0.5 * (STEP_S + 3 * TOKEN_S) / TOKEN_S)
PROMPT = TokenIds(ids=tuple(5 + n % 40 for n in range(340)))


@dataclass
class SlowMachine:
    """Its clock stands still but in steps; `steps` are (rows of one token, tokens of prompts)."""

    now_s: float = 0.0
    steps: list[tuple[int, int]] = field(default_factory=list)

    def clock(self) -> float:
        return self.now_s

    def take_time(self, rows: Sequence[StepRow]) -> None:
        counts = [row.count for row in rows]
        self.now_s += STEP_S + TOKEN_S * sum(counts)
        self.steps.append((counts.count(1), sum(count for count in counts if count > 1)))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> SlowMachine:
    machine, execute = SlowMachine(), ModelRunner.execute

    def execute_slowly(
        runner: ModelRunner, rows: Sequence[StepRow], wishes: Sequence[Wish]
    ) -> np.ndarray:
        machine.take_time(rows)
        return execute(runner, rows, wishes)

    monkeypatch.setattr(ModelRunner, "execute", execute_slowly)
    return machine


@pytest.fixture
def engine(machine: SlowMachine) -> Iterator[Engine]:
    engine = Engine(machine.clock)
    yield engine
    engine.shutdown()


def test_beside_running_chats_a_prompt_is_read_in_parts_that_take_half_a_step(
    engine: Engine, machine: SlowMachine, tmp_path: Path
) -> None:
    path = write_tiny_gguf(tmp_path)
    load(engine, path, pool_tokens=2048)
    late = ask("late", prompt=PROMPT, max_tokens=8)
    alone = run_all(engine, [late]).tokens("late")
    assert machine.steps[:2] == [(0, 256), (0, 84)]

    load(engine, path, pool_tokens=2048)  # forgets the prompt
    ear = Ear(engine)
    chats = [ask(f"chat{n}", max_tokens=200) for n in range(3)]
    with submitted_until(
        engine, chats, lambda e: isinstance(e, TokenDelta) and len(ear.tokens("chat2")) > 3
    ):
        start = len(machine.steps)
        engine.submit(late)
    ear.wait_end("late")
    mixed = [prompt for replies, prompt in machine.steps[start:] if prompt and replies == 3]
    assert sum(mixed) >= 300
    assert max(mixed) <= WORTH_HALF_A_STEP
    assert ear.tokens("late") == alone
