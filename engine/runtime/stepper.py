"""One step of the engine: plan, compute, sample, turn tokens into text, report. Engine thread only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.api import (
    EngineEvent,
    Failed,
    Finished,
    FinishReason,
    Parked,
    PromptProgress,
    Restored,
    Started,
    TokenDelta,
)
from engine.core.parked import EndReason
from engine.core.types import SeqEnd, Sequence, SeqUpdate, StepBatch, StepRow
from engine.errors import (
    ContextLengthExceeded,
    DeviceFailure,
    EngineError,
    RestoreFailed,
    WaitedTooLong,
)
from engine.runtime.live_request import Generation, LiveRequest, token_logprobs
from engine.runtime.loaded_model import LoadedModel
from engine.runtime.rate_meter import RateMeter
from engine.runtime.sampler import SampledToken

_NO_TOKEN = 0
"""Stands in for the token of a row that could not be sampled; its request ends in the same step."""


class Stepper:
    """Drives one loaded model. `live` is the engine's table of requests; ended ones are taken out of it here."""

    def __init__(
        self,
        model: LoadedModel,
        live: dict[str, LiveRequest],
        rate: RateMeter,
        clock: Callable[[], float],
    ) -> None:
        self._model = model
        self._scheduler = model.scheduler
        self._live = live
        self._rate = rate
        self._clock = clock
        self._batch: StepBatch | None = None

    @property
    def is_idle(self) -> bool:
        return self._scheduler.is_idle

    @property
    def rests(self) -> bool:
        """Whether the last step had nothing to compute: only a command or `wake_s` can change that."""
        return self._batch is not None and self._batch.is_empty

    @property
    def wake_s(self) -> float | None:
        """While it rests: when time alone changes something."""
        return self._batch.wake_s if self._batch is not None else None

    def add(self, live: LiveRequest) -> None:
        """Put a tokenised request in line."""
        assert live.generation is not None
        self._scheduler.add(live.generation.seq)

    def step(self) -> list[EngineEvent]:
        """Compute one step. A failure ends the requests of this step and nothing else."""
        batch = self._scheduler.schedule(self._clock())
        self._batch = batch
        events = self._report_moves(batch)
        if batch.is_empty:
            return events
        try:
            logits = self._model.runner.execute(batch.rows)
        except Exception as error:  # noqa: BLE001 - the loop must outlive any kernel
            return events + self._fail_batch(batch, error)
        choices = {
            row.seq.request_id: self._choose(row, logits[index])
            for index, row in enumerate(batch.sampling_rows)
        }
        token_ids = [
            _NO_TOKEN if isinstance(one, EngineError) else one.token_id for one in choices.values()
        ]
        now_s = self._clock()
        updates = self._scheduler.update(batch, token_ids, now_s)
        self._rate.add(now_s, sum(update.token_id is not None for update in updates))
        events += _prompt_progress(batch)
        for update in updates:
            events += self._report_update(update, choices.get(update.seq.request_id), now_s)
        return events

    def _choose(self, row: StepRow, logits: np.ndarray) -> SampledToken | EngineError:
        """The next token of one row, or why there is none; a bad request must not end its neighbours."""
        sampler = self._generation(row.seq).sampler
        try:
            return sampler.sample(logits, row.seq.token_ids)
        except EngineError as error:
            return error

    def _report_moves(self, batch: StepBatch) -> list[EngineEvent]:
        """Who started, was parked or came back by the plan of this step."""
        events: list[EngineEvent] = [self._ended(end) for end in batch.ended]
        events += [
            Started(
                request_id=seq.request_id,
                prompt_tokens=seq.num_prompt,
                cached_tokens=seq.num_cached,
                queued_s=(seq.started_s or seq.arrival_s) - seq.arrival_s,
            )
            for seq in batch.started
        ]
        events += [
            Restored(
                request_id=seq.request_id,
                parked_s=seq.last_park_s,
                recomputed_tokens=seq.last_recomputed,
            )
            for seq in batch.restored
        ]
        explain = self._scheduler.explain() if batch.parked else None
        for seq in batch.parked:
            assert explain is not None
            assert seq.parked is not None
            parked = Parked(
                request_id=seq.request_id,
                held_tokens=len(seq.token_ids),
                place=explain.place(seq),
                reason=seq.parked.reason,
            )
            events.append(parked)
        return events

    def _report_update(
        self, update: SeqUpdate, choice: SampledToken | EngineError | None, now_s: float
    ) -> list[EngineEvent]:
        seq = update.seq
        if isinstance(choice, EngineError):
            self._scheduler.abort(seq.request_id, now_s)
            return [self._failed(seq, choice)]
        generation, finish, text = self._generation(seq), update.finish, ""
        if update.token_id is not None:
            if seq.num_generated == 1:
                generation.parked_before_first_s = seq.parked_s
            if update.token_id not in seq.eos_ids:
                step = generation.stream.push(update.token_id)
                text = step.text
                if step.stopped and finish is not FinishReason.STOP:
                    if finish is None:
                        self._scheduler.finish(seq)
                    finish = FinishReason.STOP
        if finish is not None:
            text += generation.stream.finish()
        events: list[EngineEvent] = []
        if update.token_id is not None or text:
            events.append(self._delta(generation, update.token_id, text, choice))
        if finish is not None:
            usage = self._live.pop(seq.request_id).usage(now_s)
            events.append(Finished(request_id=seq.request_id, reason=finish, usage=usage))
        return events

    def _delta(
        self, generation: Generation, token_id: int | None, text: str, choice: SampledToken | None
    ) -> TokenDelta:
        request_id = generation.seq.request_id
        self._live[request_id].has_sent_text |= bool(text)
        logprobs = token_logprobs(choice, self._model.tokenizer) if choice is not None else ()
        token_ids = () if token_id is None else (token_id,)
        return TokenDelta(request_id=request_id, text=text, token_ids=token_ids, logprobs=logprobs)

    def _fail_batch(self, batch: StepBatch, error: Exception) -> list[EngineEvent]:
        failure = DeviceFailure(f"the step failed: {type(error).__name__}: {error}")
        return [self._failed(seq, failure) for seq in self._scheduler.fail(batch)]

    def _ended(self, end: SeqEnd) -> Failed:
        """Why the scheduler ended a request, as an error."""
        match end.reason:
            case EndReason.POOL_FULL:
                error: EngineError = ContextLengthExceeded(
                    f"Context size has been exceeded: {end.needed_tokens} tokens do not fit the pool "
                    f"of {end.limit_tokens} beside the others; shorten it, or let it be parked",
                    needed_tokens=end.needed_tokens,
                    limit_tokens=end.limit_tokens,
                )
            case EndReason.WAITED_TOO_LONG:
                error = WaitedTooLong(
                    f"waited {end.waited_s:.1f} s for room, as long as the request allows; ask again later"
                )
            case EndReason.RESTORE_FAILED:
                error = RestoreFailed(
                    "failed to restore the preempted sequence; ask again, or raise the memory for parking"
                )
        return self._failed(end.seq, error)

    def _failed(self, seq: Sequence, error: EngineError) -> Failed:
        live = self._live.pop(seq.request_id)
        return Failed(request_id=seq.request_id, error=error, partial=live.has_sent_text)

    def _generation(self, seq: Sequence) -> Generation:
        generation = self._live[seq.request_id].generation
        assert generation is not None, f"{seq.request_id} is scheduled without a tokenised prompt"
        return generation


def _prompt_progress(batch: StepBatch) -> list[EngineEvent]:
    """Progress of prompts (or of parked sequences being read again) that this step did not finish."""
    return [
        PromptProgress(
            request_id=row.seq.request_id,
            computed_tokens=row.start + row.count,
            prompt_tokens=len(row.seq.token_ids),
        )
        for row in batch.rows
        if not row.samples
    ]
