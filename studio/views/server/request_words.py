"""Requests of programs in words: state, tokens, duration, and what a row has no room for.

Pure functions on the GUI thread. Must not import services or widgets.
"""

from __future__ import annotations

from datetime import datetime

from engine.runs import Run, RunState
from studio.models.request_log import RequestRow, RequestState
from studio.views.run_sentences import describe_run
from studio.views.status_words import Mark, StatusWords, Tone, joined
from studio.views.words import count, seconds, tr

_FURTHEST_FIRST = (
    RunState.WRITING,
    RunState.READING,
    RunState.BEING_RESTORED,
    RunState.BEING_PARKED,
    RunState.PARKED,
    RunState.QUEUED,
    RunState.AWAITS_OWNER,
)


def describe_request(row: RequestRow, runs: tuple[Run, ...]) -> StatusWords:
    """Where a request is: where the most advanced of its replies is. `runs` are those that the engine has."""
    if row.is_over:
        return _describe_end(row)
    if row.state is RequestState.HELD_BACK:
        words = tr("Queued: its key holds its share of the pool")
        return StatusWords(Mark.DOTS, words, Tone.WAITING)
    furthest = min(runs, key=lambda run: _FURTHEST_FIRST.index(run.state), default=None)
    if furthest is not None:
        return describe_run(furthest)
    return StatusWords(Mark.DOT, tr("Running"), Tone.ACTIVE)


def time_words(row: RequestRow) -> str:
    """When it came."""
    return f"{datetime.fromtimestamp(row.started_s):%H:%M:%S}"


def request_words(row: RequestRow) -> str:
    """What was asked for: "POST /v1/chat/completions"."""
    return f"{row.method} {row.path}"


def token_words(row: RequestRow, runs: tuple[Run, ...]) -> str:
    """Tokens of the prompt and of the reply: "15 + 40"; empty while there are none."""
    prompt, reply = row.prompt_tokens, row.completion_tokens
    if runs:
        prompt = max(run.prompt_tokens for run in runs)
        reply += sum(run.completion_tokens for run in runs)
    return f"{count(prompt)} + {count(reply)}" if prompt or reply else ""


def duration_words(row: RequestRow, now_s: float) -> str:
    """How long it took, or takes by now."""
    end_s = row.ended_s if row.ended_s is not None else now_s
    return seconds(max(0.0, end_s - row.started_s))


def detail_words(row: RequestRow, runs: tuple[Run, ...], now_s: float) -> str:
    """All that is known of it, also what the table has no room for."""
    tokens = token_words(row, runs)
    facts = joined(
        time_words(row),
        row.client,
        request_words(row),
        row.model,
        describe_request(row, runs).text,
        tr("{tokens} tokens").format(tokens=tokens) if tokens else "",
        duration_words(row, now_s),
    )
    told = tr("The program was told: {error}").format(error=row.error) if row.error else ""
    return "\n".join(text for text in (facts, told, row.prompt) if text)


def _describe_end(row: RequestRow) -> StatusWords:
    if row.state is RequestState.LEFT:
        return StatusWords(Mark.SQUARE, tr("The client left"))
    if row.state is RequestState.REFUSED:
        words = tr("Failed · {status}").format(status=row.status)
        return StatusWords(Mark.CROSS, words, Tone.FAILED)
    if row.parked_s >= 0.05:
        words = tr("Done · parked for {time}").format(time=seconds(row.parked_s))
        return StatusWords(Mark.CHECK, words)
    return StatusWords(Mark.CHECK, tr("Done"))
