"""Turns prompts into tokens, off the engine thread: one worker applies templates and tokenises, in order of arrival.

The tokenizer releases the interpreter lock, so a long prompt does not hold up the running chats.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

from engine.api import Chat, Prompt, Request, Text, TokenIds
from engine.errors import (
    ContextLengthExceeded,
    EngineError,
    InvalidRequest,
    ModelError,
    RequestError,
)
from engine.text.chat_prompt import encode_chat
from engine.text.chat_template import ChatTemplate
from engine.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class PrepareTask:
    """A request and what its prompt is tokenised with."""

    request: Request
    tokenizer: Tokenizer
    template: ChatTemplate
    window_tokens: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """The worker's answer: the prompt's tokens, or why there are none."""

    request_id: str
    token_ids: tuple[int, ...]
    error: EngineError | None = None


class Intake:
    """The worker. `deliver` is called on its thread with each answer."""

    def __init__(self, deliver: Callable[[Prepared], object]) -> None:
        self._deliver = deliver
        self._tasks: queue.SimpleQueue[PrepareTask | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="layby-intake", daemon=True)
        self._thread.start()

    def prepare(self, task: PrepareTask) -> None:
        """Queue a prompt; the answer comes to `deliver`."""
        self._tasks.put(task)

    def close(self) -> None:
        """Stop after the prompt at hand; queued ones get no answer."""
        self._tasks.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._deliver(answer(task))


def answer(task: PrepareTask) -> Prepared:
    """Read a prompt; what is wrong with it is part of the answer."""
    request_id = task.request.request_id
    try:
        return Prepared(request_id, _tokenize(task))
    except EngineError as error:
        return Prepared(request_id, (), error)
    except Exception as error:  # noqa: BLE001 - a prompt must never end the worker
        reason = f"the prompt could not be read: {type(error).__name__}: {error}"
        return Prepared(request_id, (), RequestError(reason))


def _tokenize(task: PrepareTask) -> tuple[int, ...]:
    token_ids = tokenize(task.request.prompt, task.tokenizer, task.template)
    check_fits(len(token_ids), task.window_tokens)
    return token_ids


def check_fits(prompt_tokens: int, window_tokens: int) -> None:
    """Raises ContextLengthExceeded for a prompt that leaves no room for a reply."""
    if prompt_tokens >= window_tokens:
        raise ContextLengthExceeded(
            f"the prompt has {prompt_tokens} tokens and a reply needs at least one more, but a request can hold "
            f"{window_tokens}; shorten the prompt, or load the model with a larger context",
            needed_tokens=prompt_tokens,
            limit_tokens=window_tokens,
        )


def tokenize(prompt: Prompt, tokenizer: Tokenizer, template: ChatTemplate) -> tuple[int, ...]:
    """A prompt's tokens; any thread. Raises RequestError for one that the model's template does not take."""
    try:
        return _encode(prompt, tokenizer, template)
    except (
        ModelError
    ) as error:  # the model serves other prompts: it is this one that it cannot take
        raise RequestError(f"the model's own rules do not take this prompt: {error}") from error


def _encode(prompt: Prompt, tokenizer: Tokenizer, template: ChatTemplate) -> tuple[int, ...]:
    match prompt:
        case Chat():
            return encode_chat(tokenizer, template, prompt).token_ids
        case Text(text=text):
            return tuple(tokenizer.encode(text, add_special=True))
        case TokenIds(ids=ids):
            wrong = next((i for i in ids if not 0 <= i < tokenizer.vocab_size), None)
            if wrong is not None:
                raise InvalidRequest(
                    f"Prompt contains invalid tokens: token id {wrong} is outside the vocabulary, "
                    f"0 to {tokenizer.vocab_size - 1}",
                    param="prompt",
                )
            return ids
