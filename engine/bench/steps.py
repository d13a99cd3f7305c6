"""How long steps take: prompts, one row or many at a time, short and long contexts. The caller's thread calls torch."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from engine.api import LoadOptions
from engine.bench.step_rig import StepRig, StepTime

_MOST_CONTEXT = 512
_WARM_STEPS = 3
_ROUND_TOKENS = 32
"""Pools are sized in pages of so many tokens."""
_STEPS_OF_A_PROMPT = 16
"""Whoever is in already decodes on, while another's prompt is read in at most so many steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlan:
    """What is measured."""

    batches: tuple[int, ...] = (1, 2, 3, 4, 8, 16)
    """Rows of decoding steps, in ascending order."""
    context_tokens: int = _MOST_CONTEXT
    steps: int = 40
    """Steps timed for each number of rows."""
    prompts: int = 5
    """Prompts timed."""

    @property
    def reply_tokens(self) -> int:
        return self.steps + _WARM_STEPS + 2 + _STEPS_OF_A_PROMPT * max(self.batches)

    def pool_tokens(self) -> int:
        """A pool in which all that is measured finds room, finished prompts included."""
        each = self.context_tokens + self.reply_tokens + 2 * _ROUND_TOKENS
        return (max(self.batches) + self.prompts) * each + self.long_tokens

    @property
    def long_tokens(self) -> int:
        """Tokens of the long prompt, which tells what context costs."""
        return 3 * self.context_tokens


@dataclass(frozen=True, slots=True)
class StepSurvey:
    """Every step that was timed."""

    context_tokens: int
    token_bytes: int
    """Of a token's keys and values."""
    prompts: tuple[tuple[StepTime, ...], ...]
    """The steps of each prompt that was read alone."""
    decodes: dict[int, tuple[StepTime, ...]]
    """Steps by their number of rows, after `context_tokens` of context."""
    others: tuple[StepTime, ...]
    """At other lengths of context."""

    @property
    def prefill_tokens_s(self) -> tuple[float, ...]:
        """Speed of each prompt."""
        return tuple(
            sum(step.num_tokens for step in steps) / sum(step.step_s for step in steps)
            for steps in self.prompts
        )

    def decode_tokens_s(self, rows: int) -> tuple[float, ...]:
        """Speed of each step of so many rows, all of them together."""
        return tuple(rows / step.step_s for step in self.decodes[rows])

    @property
    def all_steps(self) -> tuple[StepTime, ...]:
        read = (step for steps in self.prompts for step in steps)
        return (*read, *(one for steps in self.decodes.values() for one in steps), *self.others)


def plan_for_window(plan: StepPlan, window_tokens: int) -> StepPlan:
    """The plan with contexts that a model of this window can hold, three times over.

    Raises ValueError when the window is too short to measure anything.
    """
    most = (window_tokens - plan.reply_tokens) // 3
    if most < 2 * _ROUND_TOKENS:
        raise ValueError(
            f"the model's window has {window_tokens} tokens, "
            f"measuring needs {6 * _ROUND_TOKENS + plan.reply_tokens}"
        )
    return StepPlan(
        batches=plan.batches,
        context_tokens=min(plan.context_tokens, most),
        steps=plan.steps,
        prompts=plan.prompts,
    )


def survey_options(options: LoadOptions, plan: StepPlan) -> LoadOptions:
    """The user's options with a pool and seats for what is measured."""
    return LoadOptions(
        pool_tokens=plan.pool_tokens(),
        parallel=max(*plan.batches, 2),
        batch_tokens=options.batch_tokens,
        threads=options.threads,
        device=options.device,
        cpu_variant=options.cpu_variant,
        kv_type=options.kv_type,
    )


def survey_steps(rig: StepRig, plan: StepPlan) -> StepSurvey:
    """Time prompts, then decoding. The rig's pool must have the plan's size; may be called again and again."""
    first = rig.num_added  # prompts of an earlier survey would be found again instead of read
    rig.add(plan.context_tokens, 2, seed=first)
    rig.read_prompts()  # the first steps find everything cold
    rig.clear()
    seeds = range(first + 1, first + 1 + plan.prompts)
    prompts = tuple(_read_alone(rig, plan.context_tokens, seed) for seed in seeds)
    decodes = {
        rows: _decode(rig, plan, [plan.context_tokens] * rows, first_seed=seeds[0])
        for rows in plan.batches
    }
    last = first + plan.prompts + max(plan.batches)
    long_prompt = _read_alone(rig, plan.long_tokens, last)
    others = [*long_prompt, *_decode(rig, plan, [plan.long_tokens], first_seed=last)]
    others += _decode(rig, plan, [_ROUND_TOKENS], first_seed=last)
    return StepSurvey(plan.context_tokens, rig.token_bytes, prompts, decodes, tuple(others))


def settled_decodes(rig: StepRig, num_steps: int) -> tuple[StepTime, ...]:
    """Let everybody decode: so many steps, after some to warm up."""
    for _ in range(_WARM_STEPS):
        rig.step()
    return tuple(rig.step() for _ in range(num_steps))


def _read_alone(rig: StepRig, num_tokens: int, seed: int) -> tuple[StepTime, ...]:
    rig.add(num_tokens, 2, seed=seed)
    steps = tuple(rig.read_prompts())
    rig.clear()
    return steps


def _decode(
    rig: StepRig, plan: StepPlan, contexts: list[int], *, first_seed: int
) -> tuple[StepTime, ...]:
    """Decode sequences of these lengths together. Prompts read before are found again, so this costs little."""
    for index, tokens in enumerate(contexts):
        rig.add(tokens, plan.reply_tokens, seed=first_seed + index)
    rig.read_prompts()
    steps = settled_decodes(rig, plan.steps)
    rig.clear()
    kinds = Counter(len(step.rows) for step in steps)
    assert kinds == {len(contexts): plan.steps}, f"not all of {len(contexts)} were in: {kinds}"
    return steps
