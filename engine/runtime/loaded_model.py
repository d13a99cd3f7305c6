"""A model with everything needed to serve it: weights and pool, tokenizer, template. Engine thread only."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from engine.api import Chat, LoadModel, ModelInfo
from engine.core.config import PAGE_TOKENS, SchedulerConfig
from engine.core.scheduler import Scheduler
from engine.core.types import Sequence
from engine.formats.checkpoint import inspect_model, open_checkpoint
from engine.runtime.intake import PrepareTask
from engine.runtime.live_request import Generation, LiveRequest
from engine.runtime.model_runner import ModelRunner
from engine.runtime.sampler import Sampler
from engine.text.chat_template import ChatTemplate, load_chat_template
from engine.text.text_stream import TextStream
from engine.text.tokenizer import Tokenizer, load_tokenizer


@dataclass(slots=True)
class LoadedModel:
    """Made by `load`; `close` frees weights and pool."""

    command: LoadModel
    info: ModelInfo
    tokenizer: Tokenizer
    template: ChatTemplate
    runner: ModelRunner
    scheduler: Scheduler

    @classmethod
    def load(cls, command: LoadModel, on_progress: Callable[[float], object]) -> LoadedModel:
        """Read the files and make the pool. `on_progress` hears shares of 1 and may raise to cancel.

        Raises ModelError when the model cannot be used, and what `on_progress` raises.
        """
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
        )
        return cls(command, info, tokenizer, template, runner, Scheduler(config))

    def prepare_task(self, live: LiveRequest) -> PrepareTask:
        """What the intake worker needs for this request's prompt."""
        return PrepareTask(live.request, self.tokenizer, self.template, self.runner.window_tokens)

    def generation(self, live: LiveRequest, token_ids: tuple[int, ...]) -> Generation:
        """Everything a tokenised request needs to run. Raises InvalidRequest on sampling this vocabulary cannot do."""
        request = live.request
        seed = request.sampling.seed
        if seed is None:
            seed = self.command.options.seed
        if seed is None:
            seed = int.from_bytes(os.urandom(8), "little")
        room = self.runner.window_tokens - len(token_ids)
        seq = Sequence(
            request_id=request.request_id,
            token_ids=list(token_ids),
            num_prompt=len(token_ids),
            max_new_tokens=room if request.max_tokens is None else min(request.max_tokens, room),
            eos_ids=frozenset() if request.ignore_eos else self.tokenizer.eos_ids,
            priority=request.priority,
            arrival=live.arrival,
            arrival_s=live.arrival_s,
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

    def close(self) -> None:
        self.runner.close()
