"""Layby beside a llama-server on the same file, pair by pair: one chat, four that fit, four prompts, a newcomer.

Goals depend on how the file stores its weights: they are what was promised of a model of 135 million parameters.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace

from engine.bench.figures import Figure, Goal, ratios
from studio.bench.newcomer import time_newcomer
from studio.bench.plan import BenchPlan, ChatLoad, Part
from studio.bench.report import Section, pair_of
from studio.bench.scenarios import Scenario, ScenarioRun, run_scenario
from studio.bench.server_process import OURS, THEIRS, Server, all_servers

OnNews = Callable[[str], object]


_DECODE, _PREFILL, _TOGETHER = "decode of one", "prompt of one", "four together: useful"
_FIRST_MEAN, _FIRST_MAX = "four prompts: first token, mean", "four prompts: first token, last"
_HOLD_UP, _NEWCOMER = "running chats held up by a new one", "the new one's first token"
_UNITS = {
    _DECODE: "tokens/s",
    _TOGETHER: "tokens/s",
    _PREFILL: "tokens/s",
    _FIRST_MEAN: "s",
    _FIRST_MAX: "s",
    _HOLD_UP: "ms",
    _NEWCOMER: "s",
}


def _speeds(decode: float, together: float, prefill: float) -> dict[str, Goal]:
    return {
        _DECODE: Goal(bound=decode),
        _TOGETHER: Goal(bound=together),
        _PREFILL: Goal(bound=prefill),
    }


_FIRST_TOKENS = dict.fromkeys((_FIRST_MEAN, _FIRST_MAX), Goal(bound=0.25, is_least=False))
_OUR_GOALS = {_HOLD_UP: Goal(bound=150, is_least=False)}
_GOALS = {
    "Q4_1": _speeds(2.3, 4.5, 5.0) | _FIRST_TOKENS,
    "Q4_0": _speeds(1.5, 3.0, 2.2),
    "Q8_0": _speeds(1.3, 2.0, 1.5),
    "Q4_K": _speeds(1.3, 2.0, 1.5),
    "Q5_0": _speeds(1.3, 2.0, 1.5),  # what Q4_K_M comes to where rows are no multiple of 256
    "BF16": _speeds(1.0, 1.8, 1.2),
}
"""Ours by theirs, by how most weights are stored."""


def measure_against(plan: BenchPlan, on_news: OnNews) -> Section:
    """Every pair once in each round; who is first changes from round to round."""
    found: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in (OURS, THEIRS)}
    with all_servers(plan, plan.load.wide_pool_tokens) as servers:
        for index in range(plan.rounds):
            order = list(servers.items())[:: -1 if index % 2 else 1]
            for words, measure in _MEASURES.items():
                for name, server in order:
                    on_news(f"{name}, {words}, {index + 1} of {plan.rounds}")
                    for what, value in measure(server, plan, 3000 + index):
                        found[name][what].append(value)
    title = f"against {THEIRS}, {plan.storage}, a pool of {plan.load.wide_pool_tokens} tokens"
    return Section(Part.AGAINST, title, tuple(_figures(plan, found[OURS], found[THEIRS])))


_Found = Iterator[tuple[str, float]]


def _one(server: Server, plan: BenchPlan, seed: int) -> _Found:
    lengths = plan.lengths
    load = replace(
        plan.load,
        num_chats=1,
        prompt_words=lengths.long_prompt_words,
        reply_tokens=lengths.lone_reply_tokens,
    )
    run = _run(server, plan, load, seed)
    gap_ms = run.gap_ms(0.5)
    yield _DECODE, 1e3 / gap_ms if gap_ms else 0.0  # a reply of one piece has no gap
    yield _PREFILL, run.replies[0].prompt_tokens / run.replies[0].first_token_s


def _together(server: Server, plan: BenchPlan, seed: int) -> _Found:
    yield _TOGETHER, _run(server, plan, plan.load, seed + 100).useful_tokens_s


def _first_tokens(server: Server, plan: BenchPlan, seed: int) -> _Found:
    load = replace(plan.load, prompt_words=plan.lengths.short_prompt_words, reply_tokens=2)
    times = _run(server, plan, load, seed + 200).first_tokens_s
    yield _FIRST_MEAN, statistics.mean(times)
    yield _FIRST_MAX, max(times)


def _newcomer(server: Server, plan: BenchPlan, seed: int) -> _Found:
    arrival = time_newcomer(server.url, plan, seed=seed + 300)
    yield _HOLD_UP, arrival.hold_up_s * 1e3
    yield _NEWCOMER, arrival.first_token_s


_MEASURES: dict[str, Callable[[Server, BenchPlan, int], _Found]] = {
    "one chat": _one,
    "four together": _together,
    "four prompts": _first_tokens,
    "a newcomer": _newcomer,
}


def _run(server: Server, plan: BenchPlan, load: ChatLoad, seed: int) -> ScenarioRun:
    return run_scenario(server.url, load, Scenario.FITS, seed=seed, api_key=plan.api_key)


def _figures(
    plan: BenchPlan, ours: dict[str, list[float]], theirs: dict[str, list[float]]
) -> Iterator[Figure]:
    goals = _GOALS.get(plan.storage, {})
    for name, unit in _UNITS.items():
        yield Figure(f"{OURS}, {name}", unit, tuple(ours[name]), _OUR_GOALS.get(name))
        yield Figure(f"{THEIRS}, {name}", unit, tuple(theirs[name]))
        if all(theirs[name]):
            note = pair_of(ours[name], theirs[name], unit)
            shares = ratios(ours[name], theirs[name])
            yield Figure(f"{OURS} by {THEIRS}, {name}", "", shares, goals.get(name), note=note)
