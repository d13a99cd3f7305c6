"""One step of the engine: plan, copy, compute, sample, turn tokens into text, report. Engine thread only."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from engine.api import (
    EngineEvent,
    Failed,
    Finished,
    FinishReason,
    PromptProgress,
    TokenDelta,
)
from engine.core.pace import StepPace
from engine.core.types import Sequence, SeqUpdate, StepBatch
from engine.errors import DeviceFailure, EngineError
from engine.runtime.live_request import Generation, LiveRequest, token_logprobs
from engine.runtime.loaded_model import LoadedModel
from engine.runtime.messages import CopyDone
from engine.runtime.moves import error_of, report_moves
from engine.runtime.rate_meter import RateMeter
from engine.runtime.sampler import SampledToken
from engine.runtime.step_outputs import OutputRow, last_outputs, rows_to_read
from engine.text.text_stream import Told
from kernels.wishes import Found

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
        self._pace = StepPace()
        self._stays: dict[str, LiveRequest] = {}
        self._wakes_s = math.inf
        """When the next step may do something, if nothing else happens before."""
        self._is_steady = False
        """The latest step was, and nothing has happened since: there is no prompt to be read."""

    def wait_s(self) -> float:
        """Seconds until there is a step to compute, for all that is known now; infinite if nobody is alive."""
        if self._scheduler.is_idle:
            return math.inf
        return max(self._wakes_s - self._clock(), 0.0) if self._wakes_s else 0.0

    def wake(self) -> None:
        """Something has changed: the next step may have something to do."""
        self._wakes_s = 0.0
        self._is_steady = False

    def add(self, live: LiveRequest) -> None:
        """Put a tokenised request in line."""
        assert live.generation is not None
        self._scheduler.add(live.generation.seq)
        live.is_in_line = True
        self.wake()

    def follow(self, live: LiveRequest) -> None:
        """Put a request at the head of the line that goes on where another has ended, if that one stays still."""
        assert live.generation is not None
        self._stays.pop(live.request.follows, None)
        self._scheduler.follow(live.generation.seq, live.request.follows, self._clock())
        live.is_in_line = True
        self.wake()

    def let_go(self, request_id: str) -> None:
        """Keep nothing more of a request that has ended; does nothing if nothing is kept."""
        if self._stays.pop(request_id, None) is not None:
            self._scheduler.abort(request_id, self._clock())

    def stays(self) -> list[LiveRequest]:
        """Requests that have ended and are kept for their owner."""
        for live in tuple(self._stays.values()):
            if live.generation is None or live.generation.seq.has_ended:
                del self._stays[live.request.request_id]
        return list(self._stays.values())

    def adopt(self, live: LiveRequest) -> None:
        """Put a request in line that goes on with a state of before: it is parked."""
        assert live.generation is not None
        self._scheduler.adopt(live.generation.seq, self._clock())
        live.is_in_line = True
        self.wake()

    def finish_copy(self, done: CopyDone) -> None:
        """A copy that was made beside the steps has ended."""
        if done.copier is not self._model.copier:
            return  # of a model that was unloaded meanwhile
        if done.is_made:
            self._scheduler.copy_landed(done.copy_id, self._clock())
        else:
            self._scheduler.copy_failed(done.copy_id, self._clock())

    def give_back(self) -> None:
        """Return memory that holds nothing any more to the system."""
        released = self._scheduler.collect_released()
        if released.pages:
            self._model.runner.give_back(released.pages)
        if released.buffer_ids:
            self._model.copier.give_back(released.buffer_ids)

    def step(self) -> list[EngineEvent]:
        """Compute one step, or learn what to wait for. A failure ends the requests of this step and nothing else."""
        began_s = self._clock()
        batch, events = self._plan(began_s)
        if not batch.rows:
            self._rest(batch, has_moved=bool(events))
            return events
        if not batch.is_steady:
            began_s = (
                self._clock()
            )  # who comes and goes, and what is copied for that, is no part of a step
        generations = [self._generation(row.seq) for row in batch.sampling_rows]
        read = () if batch.is_steady else rows_to_read(batch.rows)
        wishes = [one.wish() for one in generations]  # which moves grammars on, too
        try:
            logits = self._model.runner.execute(batch.rows, [] if read else wishes)
            found = self._model.runner.found() or [None] * len(generations)
        except Exception as error:  # noqa: BLE001 - the loop must outlive any kernel
            return events + self._fail_batch(batch, error)
        choices: dict[str, SampledToken | EngineError] = {}
        token_ids = []
        places = last_outputs(batch.rows) if read else range(len(generations))
        for one, place, what in zip(generations, places, found, strict=True):
            choice = _choose(one, what, logits, place)
            choices[one.seq.request_id] = choice
            token_ids.append(_NO_TOKEN if isinstance(choice, EngineError) else choice.token_id)
        events += self._read(read, logits, choices)
        now_s = self._clock()
        num_replies = batch.num_replies
        num_read = batch.num_tokens - num_replies
        self._pace.observe(num_replies=num_replies, prompt_tokens=num_read, seconds=now_s - began_s)
        updates = self._scheduler.update(batch, token_ids, now_s)
        self._rate.add(now_s, len(token_ids))
        if not batch.is_steady:
            events += _prompt_progress(batch)
        for update in updates:
            events += self._report_update(update, choices.get(update.seq.request_id), now_s)
        self._model.tally.add(
            batch.rows,
            num_replies=num_replies,
            prompt_tokens=num_read,
            seconds=self._clock() - began_s,
        )
        return events

    # --- the plan

    def _plan(self, now_s: float) -> tuple[StepBatch, list[EngineEvent]]:
        """A batch whose copies are made and whose pages have memory behind them, and what moved for it."""
        most = None if self._is_steady else self._most_beside_replies()
        batch = self._scheduler.schedule(now_s, beside_replies=most)
        self._is_steady = batch.is_steady and len(batch.rows) == len(self._live)
        if batch.is_steady:
            return batch, []
        batch = self._prepare(batch)
        events = self._report_moves(batch)
        try:
            self._model.runner.commit(batch.rows)
        except MemoryError:
            batch = self._prepare(self._scheduler.last_resort(batch, self._clock()))
            events += self._report_moves(batch)
        return batch, events

    def _most_beside_replies(self) -> int | None:
        """Tokens of prompts that keep the pace of the replies; None: no limit, or there are no prompts."""
        num_replies = self._scheduler.num_replies
        has_prompts = len(self._live) > num_replies
        return self._pace.beside_replies(num_replies) if has_prompts else None

    def _prepare(self, batch: StepBatch) -> StepBatch:
        """Give back what is free and carry out the copies; without those who could not be restored after all."""
        self.give_back()
        for order in batch.copies:
            if not self._model.copier.carry_out(order):
                self._scheduler.copy_failed(order.copy_id, self._clock())
        self._model.settle_for_waiting()
        return batch.of_running()

    def _rest(self, batch: StepBatch, *, has_moved: bool) -> None:
        """Nothing to compute: go again at once if something moved, else wait for a moment, a copy or a command."""
        if not has_moved and not batch.copies:
            self._wakes_s = math.inf if batch.wake_s is None else batch.wake_s

    def _report_moves(self, batch: StepBatch) -> list[EngineEvent]:
        events = [
            self._failed(end.seq, error_of(end))
            for end in batch.ended
            if end.seq.request_id in self._live
        ]
        return [*events, *report_moves(batch, self._scheduler, self._generation)]

    # --- the result

    def _read(
        self,
        read: tuple[OutputRow, ...],
        logits: np.ndarray,
        choices: dict[str, SampledToken | EngineError],
    ) -> list[EngineEvent]:
        """Hand outputs of prompts to those who want them; one's trouble becomes the choice for its row."""
        events: list[EngineEvent] = []
        for one in read:
            reader = self._generation(one.seq).reader
            assert reader is not None, f"{one.seq.request_id} is read by nobody"
            try:
                reader.take(one.start, logits[one.first : one.first + one.num])
                events += reader.told()
            except EngineError as error:
                choices[one.seq.request_id] = error
        return events

    def _report_update(
        self, update: SeqUpdate, choice: SampledToken | EngineError | None, now_s: float
    ) -> list[EngineEvent]:
        seq = update.seq
        if isinstance(choice, EngineError):
            self._scheduler.abort(seq.request_id, now_s)
            return [self._failed(seq, choice)]
        generation, finish, told = self._generation(seq), update.finish, Told()
        if update.token_id is not None:
            if seq.num_generated == 1:
                generation.parked_before_first_s = seq.parked_s
            generation.reply_ids.append(update.token_id)
            if update.token_id not in seq.eos_ids:
                told = generation.stream.push(update.token_id)
                if told.has_ended and finish is not FinishReason.STOP:
                    if finish is None:
                        self._scheduler.finish(seq)
                    finish = FinishReason.STOP
        if finish is not None:
            told = Told.joined((told, generation.stream.finish()))
            if finish is FinishReason.STOP and generation.stream.has_called:
                finish = FinishReason.TOOL_CALLS
        events: list[EngineEvent] = []
        if update.token_id is not None or any(told):
            events.append(self._delta(generation, update.token_id, told, choice))
        if finish is not None:
            live = self._live.pop(seq.request_id)
            self._stay_or_go(live, finish)
            usage = live.usage(now_s)
            stop_text = generation.stream.stop_text if finish is FinishReason.STOP else ""
            events.append(
                Finished(request_id=seq.request_id, reason=finish, usage=usage, stop_text=stop_text)
            )
        return events

    def _stay_or_go(self, live: LiveRequest, finish: FinishReason) -> None:
        """One that has ended is kept for its owner where it asked for that, and this is such an end."""
        request_id, stay = live.request.request_id, live.request.stays
        if stay is None:
            return
        self._stays[request_id] = live
        if finish is not FinishReason.TOOL_CALLS and not stay.after_any_end:
            self.let_go(request_id)

    def _delta(
        self, generation: Generation, token_id: int | None, told: Told, choice: SampledToken | None
    ) -> TokenDelta:
        request_id = generation.seq.request_id
        self._live[request_id].has_sent_text |= bool(told.text or told.reasoning or told.calls)
        logprobs = token_logprobs(choice, self._model.tokenizer) if choice is not None else ()
        token_ids = () if token_id is None else (token_id,)
        return TokenDelta(
            request_id=request_id,
            text=told.text,
            token_ids=token_ids,
            logprobs=logprobs,
            reasoning=told.reasoning,
            tool_calls=told.calls,
        )

    def _fail_batch(self, batch: StepBatch, error: Exception) -> list[EngineEvent]:
        failure = DeviceFailure(f"the step failed: {type(error).__name__}: {error}")
        return [self._failed(seq, failure) for seq in self._scheduler.fail(batch)]

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


def _choose(
    generation: Generation, found: Found, logits: np.ndarray, place: int
) -> SampledToken | EngineError:
    """The next token of one row, or why there is none; a bad request must not end its neighbours."""
    seq, sampler, matcher = generation.seq, generation.sampler, generation.matcher
    if matcher is not None and matcher.error is not None:
        return matcher.error
    forgotten, mask = seq.num_discarded, generation.mask
    try:
        return sampler.sample(
            logits[place], seq.token_ids, forgotten=forgotten, found=found, mask=mask
        )
    except EngineError as error:
        return error
    except Exception as error:  # noqa: BLE001 - one row's trouble is its own
        return DeviceFailure(f"no token could be chosen: {type(error).__name__}: {error}")
