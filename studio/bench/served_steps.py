"""What the steps of a server of ours took while it served: its own counters, before and after. The caller's thread."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import httpx
from prometheus_client.parser import text_string_to_metric_families

from engine.runs import StepCount
from studio.models.errors import StudioError

_TIMEOUT_S = 10.0


def read_steps(url: str, api_key: str | None = None) -> tuple[StepCount, ...]:
    """All steps of the server's model so far. Raises StudioError where it does not tell them."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        answer = httpx.get(f"{url}/metrics", headers=headers, timeout=_TIMEOUT_S, trust_env=False)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        raise StudioError(f"the server does not tell its steps: {error}") from error
    return parse_steps(answer.text)


def parse_steps(metrics: str) -> tuple[StepCount, ...]:
    """The counters of steps among others, by kind."""
    kinds: defaultdict[tuple[int, bool], dict[str, float]] = defaultdict(dict)
    for family in text_string_to_metric_families(metrics):
        for sample in family.samples:
            if sample.name.startswith("layby:step"):
                kind = int(sample.labels["replies"]), sample.labels["prompts"] == "yes"
                kinds[kind][sample.name] = sample.value
    return tuple(
        StepCount(
            replies=replies,
            has_prompts=has_prompts,
            steps=round(values["layby:steps_total"]),
            seconds=values["layby:step_seconds_total"],
            prompt_tokens=round(values["layby:step_prompt_tokens_total"]),
            context_tokens=round(values["layby:step_context_tokens_total"]),
        )
        for (replies, has_prompts), values in sorted(kinds.items())
    )


def steps_between(before: Iterable[StepCount], after: Iterable[StepCount]) -> tuple[StepCount, ...]:
    """The steps of `after` without those of `before`."""
    known = {(one.replies, one.has_prompts): one for one in before}
    return tuple(_less(one, known.get((one.replies, one.has_prompts))) for one in after)


def _less(count: StepCount, other: StepCount | None) -> StepCount:
    if other is None:
        return count
    return StepCount(
        replies=count.replies,
        has_prompts=count.has_prompts,
        steps=count.steps - other.steps,
        seconds=count.seconds - other.seconds,
        prompt_tokens=count.prompt_tokens - other.prompt_tokens,
        context_tokens=count.context_tokens - other.context_tokens,
    )
