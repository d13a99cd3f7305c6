"""A model with everything needed to serve it: weights and pool, tokenizer, template. Engine thread only."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.api import Chat, LoadModel, LoadOptions, ModelInfo
from engine.core.config import PAGE_TOKENS, ParkMemory, SchedulerConfig
from engine.core.scheduler import Scheduler
from engine.core.types import Sequence
from engine.formats.checkpoint import inspect_model, open_checkpoint
from engine.runs import SetParkBudget, SetVictimPolicy, SteeringCommand
from engine.runtime.intake import PrepareTask
from engine.runtime.live_request import Generation, LiveRequest
from engine.runtime.messages import CopyDone
from engine.runtime.model_runner import ModelRunner
from engine.runtime.page_copier import PageCopier, choose_copies
from engine.runtime.park_plan import lowered_budget, make_knobs, mib_of
from engine.runtime.sampler import Sampler
from engine.text.chat_template import ChatTemplate, load_chat_template
from engine.text.text_stream import TextStream
from engine.text.tokenizer import Tokenizer, load_tokenizer

_KEPT_SHARE = 4
"""A context shift keeps the beginning of the prompt, as far as it is within a quarter of the window."""


@dataclass(slots=True)
class LoadedModel:
    """Made by `load`; `close` frees weights and pool."""

    options: LoadOptions
    """As they hold now: budget and policy may be changed while requests run, and parks may turn out not to be async."""
    info: ModelInfo
    tokenizer: Tokenizer
    template: ChatTemplate
    runner: ModelRunner
    copier: PageCopier
    scheduler: Scheduler

    @classmethod
    def load(
        cls,
        command: LoadModel,
        on_progress: Callable[[float], object],
        on_copy: Callable[[CopyDone], object],
    ) -> LoadedModel:
        """Read the files and make the pool.

        `on_progress` hears shares of 1 and may raise to cancel; `on_copy` hears of copies made beside the steps, on
        the copying thread. Raises ModelError when the model cannot be used, InvalidRequest when an option makes no
        sense, and what `on_progress` raises.
        """
        knobs = make_knobs(command.options)
        info = inspect_model(command.path, command.name)
        checkpoint = open_checkpoint(command.path)
        try:
            tokenizer = load_tokenizer(checkpoint)
            template = load_chat_template(checkpoint, tokenizer)
            runner = ModelRunner.load(checkpoint, command.options, on_progress)
        finally:
            checkpoint.close()
        config = SchedulerConfig(
            num_pages=runner.num_pages,
            page_tokens=PAGE_TOKENS,
            max_running=command.options.parallel,
            step_tokens=command.options.batch_tokens,
            window_tokens=runner.window_tokens,
            victim_policy=command.options.preempt_policy,
            park=runner.plan.park,
            knobs=knobs,
        )
        park = runner.plan.park
        options = command.options
        if park.memory is ParkMemory.COPIED:
            options = replace(options, preempt_async=park.is_async)
        copier = PageCopier(choose_copies(runner.pool, is_async=park.is_async), on_copy)
        return cls(options, info, tokenizer, template, runner, copier, Scheduler(config))

    def prepare_task(self, live: LiveRequest) -> PrepareTask:
        """What the intake worker needs for this request's prompt."""
        return PrepareTask(live.request, self.tokenizer, self.template, self.runner.window_tokens)

    def generation(self, live: LiveRequest, token_ids: tuple[int, ...]) -> Generation:
        """Everything a tokenised request needs to run. Raises InvalidRequest on sampling this vocabulary cannot do."""
        request = live.request
        seed = request.sampling.seed
        if seed is None:
            seed = self.options.seed
        if seed is None:
            seed = int.from_bytes(os.urandom(8), "little")
        window, shifts = self.runner.window_tokens, self.options.context_shift
        room = window - len(token_ids)
        wanted = room if request.max_tokens is None else request.max_tokens
        seq = Sequence(
            request_id=request.request_id,
            token_ids=list(token_ids),
            num_prompt=len(token_ids),
            max_new_tokens=wanted if shifts else min(wanted, room),
            eos_ids=frozenset() if request.ignore_eos else self.tokenizer.eos_ids,
            priority=request.priority,
            arrival=live.arrival,
            arrival_s=live.arrival_s,
            keep_tokens=min(len(token_ids), window // _KEPT_SHARE) if shifts else None,
            max_wait_s=request.max_wait_s,
        )
        sampler = Sampler(
            request.sampling,
            seed=seed,
            vocab_size=min(self.runner.spec.vocab_size, self.tokenizer.vocab_size),
            token_bytes=self.tokenizer.token_bytes,
        )
        continues = not isinstance(request.prompt, Chat)  # a raw completion goes on in mid-text
        stream = TextStream(self.tokenizer, request.stop, continues=continues)
        return Generation(seq, sampler, seed, stream)

    def steer(self, command: SteeringCommand, now_s: float) -> None:
        """Carry out a command by hand; what it asks for of a request that is not alive is passed over."""
        match command:
            case SetParkBudget(budget_bytes=wanted):
                budget = lowered_budget(wanted, self.runner.plan.most_budget_bytes)
                command = SetParkBudget(budget_bytes=budget)
                self.options = replace(self.options, preempt_ram_mib=mib_of(budget))
            case SetVictimPolicy(name=name):
                self.options = replace(self.options, preempt_policy=name)
        self.scheduler.steer(command, now_s)

    def settle_for_waiting(self) -> None:
        """Requests whose host memory could not be pinned are parked within the step from now on."""
        for request_id in self.copier.take_awaited():
            self.scheduler.buffer_is_pageable(request_id)
            self.options = replace(self.options, preempt_async=False)

    def close(self) -> None:
        """Free weights, pool and host buffers."""
        self.copier.close()
        self.runner.close()
