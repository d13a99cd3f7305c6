"""A model with everything needed to serve it: weights and pool, tokenizer, template. Engine thread only."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.api import (
    Chat,
    DiskTrouble,
    EngineEvent,
    EngineState,
    LoadModel,
    LoadOptions,
    ModelChanged,
    ModelInfo,
    Request,
    Wanted,
)
from engine.core.config import PAGE_TOKENS, ParkMemory, SchedulerConfig
from engine.core.planting import plant_prefix
from engine.core.scheduler import Scheduler
from engine.core.types import Sequence
from engine.errors import ParkDiskFailed
from engine.formats.checkpoint import inspect_model, open_checkpoint
from engine.runs import SetParkBudget, SetVictimPolicy, SteeringCommand
from engine.runtime.disk.disk_keeper import DiskKeeper
from engine.runtime.disk.disk_worker import DiskWorker, ModelFiles
from engine.runtime.disk.recalling import adopt_state, check_recalled
from engine.runtime.disk.state_file import Recalled
from engine.runtime.disk.state_folder import StateFolder
from engine.runtime.grammar_compiler import GrammarCompiler
from engine.runtime.intake import Prepared, PrepareTask, check_fits
from engine.runtime.least_tokens import LeastTokens
from engine.runtime.live_request import Generation, LiveRequest
from engine.runtime.messages import CopyDone, StateRead, StateWritten
from engine.runtime.model_runner import ModelRunner
from engine.runtime.output_reader import Pooler, PromptScorer
from engine.runtime.page_copier import PageCopier, choose_copies
from engine.runtime.park_plan import lowered_budget, make_knobs, mib_of
from engine.runtime.sampler import Sampler
from engine.runtime.step_tally import StepTally
from engine.runtime.wanted import check_wanted
from engine.text.chat_template import ChatTemplate, load_chat_template
from engine.text.replies.reply_format import ReplyParser, ReplyPlan
from engine.text.text_stream import TextStream, Told
from engine.text.tokenizer import Tokenizer, load_tokenizer

_LOG = logging.getLogger(__name__)
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
    grammars: GrammarCompiler = field(init=False)
    disk: DiskKeeper | None = None
    """Keeps durable requests on disk while they are parked, where that is asked for and works."""
    disk_trouble: ParkDiskFailed | None = None
    """Why it does not work."""
    files: tuple[tuple[Path, int, int], ...] = ()
    """Path, size and time of change of each file with weights: the same for a model that is loaded again."""
    tally: StepTally = field(default_factory=StepTally)

    def __post_init__(self) -> None:
        self.grammars = GrammarCompiler(self.tokenizer)

    @classmethod
    def load(
        cls,
        command: LoadModel,
        on_progress: Callable[[float], object],
        on_done: Callable[[CopyDone | StateWritten | StateRead], object],
    ) -> LoadedModel:
        """Read the files and make the pool.

        `on_progress` hears shares of 1 and may raise to cancel; `on_done` hears of copies and files made beside the
        steps, on the threads that make them. Raises ModelError when the model cannot be used, InvalidRequest when an
        option makes no sense, and what `on_progress` raises.
        """
        knobs = make_knobs(command.options)
        info = inspect_model(command.path, command.name)
        checkpoint = open_checkpoint(command.path)
        try:
            tokenizer = load_tokenizer(checkpoint)
            template = load_chat_template(checkpoint, tokenizer)
            runner = ModelRunner.load(checkpoint, command.options, on_progress)
            paths = tuple(file.path for file in checkpoint.files)
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
        park, options = runner.plan.park, command.options
        if park.memory is ParkMemory.COPIED:
            options = replace(options, preempt_async=park.is_async)
        copies = choose_copies(runner.pool, runner.mover, is_async=park.is_async)
        copier, scheduler = PageCopier(copies, on_done), Scheduler(config)
        model = cls(options, info, tokenizer, template, runner, copier, scheduler)
        model.files = tuple((path, *_size_and_time(path)) for path in paths)
        if (folder := options.preempt_disk) is not None:
            model_files = ModelFiles(
                info.name, runner.compute_id, runner.page_bytes, runner.is_finite, paths
            )
            try:
                worker = DiskWorker(StateFolder.open(folder), model_files, on_done)
                model.disk = DiskKeeper.start(worker, scheduler, runner, copier)
            except ParkDiskFailed as error:
                _LOG.warning("%s", error)
                model.disk_trouble = error
        return model

    def check_successor(self, command: LoadModel) -> None:
        """Raise what loading that in this one's place would, as far as it can be known before this one goes.

        Errors as `load`. Nothing that would still fit is refused: all that this one was given counts as free.
        """
        make_knobs(command.options)
        checkpoint = open_checkpoint(command.path)
        try:
            ModelRunner.check(checkpoint, command.options, self.runner.held_bytes)
        finally:
            checkpoint.close()

    def first_news(self) -> list[EngineEvent]:
        """It is ready, and what does not work."""
        ready = ModelChanged(state=EngineState.READY, model=self.info, progress=1.0)
        if self.disk_trouble is None:
            return [ready]
        return [ready, DiskTrouble(error=self.disk_trouble)]

    def prepare_task(self, live: LiveRequest) -> PrepareTask:
        """What the intake worker needs for this request's prompt."""
        return PrepareTask(
            live.request,
            self.tokenizer,
            self.template,
            self.grammars,
            self.runner.window_tokens,
        )

    def generation(self, live: LiveRequest, prepared: Prepared) -> Generation:
        """Everything a tokenised request needs to run.

        Raises InvalidRequest on sampling this vocabulary cannot do, ContextLengthExceeded on a prompt that was read for
        a larger window.
        """
        request, token_ids = live.request, prepared.token_ids
        check_wanted(request, self.info, self.runner.spec)
        check_fits(len(token_ids), self.runner.window_tokens, request.wants)
        if request.wants is Wanted.EMBEDDING:
            return self._embedding(live, token_ids)
        seed = request.sampling.seed
        if seed is None:
            seed = self.options.seed
        if seed is None:
            seed = int.from_bytes(os.urandom(8), "little")
        # a raw completion goes on in mid-text, and so does a reply that had begun
        continues = not isinstance(request.prompt, Chat) or request.prompt.continues
        # and what a grammar was followed with is the text, with the space it may begin with
        continues = continues or prepared.matcher is not None
        live.request = replace(request, grammar=prepared.grammar)
        generation = self._generation(
            live, token_ids, len(token_ids), seed, continues=continues, plan=prepared.plan
        )
        generation.matcher = prepared.matcher
        if request.min_tokens:
            ends = generation.seq.eos_ids
            generation.least = LeastTokens(request.min_tokens, ends, self.tokenizer.vocab_size)
        if request.tells_prompt and token_ids:
            scorer = PromptScorer(request.request_id, token_ids, generation.sampler, self.tokenizer)
            generation.read_with(scorer, in_one_step=1)
        return generation

    def _embedding(self, live: LiveRequest, token_ids: tuple[int, ...]) -> Generation:
        """A request that ends with its prompt's embedding; a whole window may be prompt."""
        spec = self.runner.spec
        live.request = replace(live.request, max_tokens=0)
        generation = self._generation(live, token_ids, len(token_ids), 0, continues=True)
        if token_ids:
            pooler = Pooler(
                live.request.request_id, spec.pooling, len(token_ids), spec.output_width
            )
            generation.read_with(pooler, in_one_step=None)
        return generation

    def recall(self, live: LiveRequest, recalled: Recalled) -> tuple[Generation, Told]:
        """The same for a request whose state was on disk, and its reply so far. Puts its pages into the pool.

        From now on `live.request` asks for what the one that was parked asked for; of its grammar the matcher is yet
        to be put in. Raises ContextLengthExceeded when
        it has more tokens than a request can have here, InvalidRequest when they are none of this vocabulary.
        """
        state, window = recalled.state, self.runner.window_tokens
        check_recalled(state, window_tokens=window, vocab_size=self.tokenizer.vocab_size)
        live.request = replace(
            live.request,
            sampling=state.sampling,
            max_tokens=state.max_tokens,
            stop=state.stop,
            ignore_eos=state.ignore_eos,
            grammar=state.grammar,
        )
        generation = self._generation(
            live,
            state.token_ids,
            state.num_prompt,
            state.seed,
            continues=state.continues_text,
            plan=state.plan,
        )
        generation.reply_ids += state.reply_ids
        told = Told.joined(map(generation.stream.push, state.reply_ids))
        adopt_state(generation.seq, state)
        generation.num_recomputes_told = state.num_recomputes
        with suppress(MemoryError):  # then it is computed again
            plant_prefix(
                self.scheduler.pool,
                state.token_ids,
                state.num_pages,
                lambda pages, first: self.runner.fill_pages(
                    pages, recalled.pages[first : first + len(pages)]
                ),
            )
        return generation, told

    def _generation(
        self,
        live: LiveRequest,
        token_ids: tuple[int, ...],
        num_prompt: int,
        seed: int,
        *,
        continues: bool,
        plan: ReplyPlan | None = None,
    ) -> Generation:
        request = live.request
        window, shifts = self.runner.window_tokens, self.options.context_shift
        room = window - num_prompt
        wanted = room if request.max_tokens is None else request.max_tokens
        seq = Sequence(
            request_id=request.request_id,
            token_ids=list(token_ids),
            num_prompt=num_prompt,
            max_new_tokens=wanted if shifts else min(wanted, room),
            eos_ids=self._end_ids(request),
            priority=request.priority,
            arrival=live.arrival,
            arrival_s=live.arrival_s,
            keep_tokens=min(num_prompt, window // _KEPT_SHARE) if shifts else None,
            max_wait_s=request.max_wait_s,
            stay=request.stays,
        )
        sampler = Sampler(
            request.sampling,
            seed=seed,
            vocab_size=min(self.runner.spec.vocab_size, self.tokenizer.vocab_size),
            token_bytes=self.tokenizer.token_bytes,
        )
        parser = None
        if plan is not None:
            parser = ReplyParser(self.template.reply, plan, seed=request.request_id)
        stream = TextStream(self.tokenizer, request.stop, continues=continues, parser=parser)
        return Generation(seq, sampler, seed, stream, continues, plan)

    def _end_ids(self, request: Request) -> frozenset[int]:
        own = frozenset[int]() if request.ignore_eos else self.tokenizer.eos_ids
        return own.union(request.stop_ids) if request.stop_ids else own

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
        """Free weights, pool and host buffers. What is on disk stays there."""
        if self.disk is not None:
            self.disk.close()
        self.copier.close()
        self.grammars.close()
        self.runner.close()


def _size_and_time(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns
