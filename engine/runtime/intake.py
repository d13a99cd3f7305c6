"""Turns prompts into tokens and compiles grammars, off the engine thread, in order of arrival.

One worker applies templates and tokenises. Requests with a grammar have another, which is there once the first of them
comes: a large grammar holds up no prompt. The tokenizer and the compiler release the interpreter lock, so neither
holds up the running chats.
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
from engine.runtime.grammar_compiler import GrammarCompiler
from engine.runtime.grammar_matcher import GrammarMatcher
from engine.text.chat_template import ChatTemplate, encode_chat
from engine.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class PrepareTask:
    """A request and what its prompt is tokenised with, and its grammar compiled."""

    request: Request
    tokenizer: Tokenizer
    template: ChatTemplate
    grammars: GrammarCompiler
    window_tokens: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """The worker's answer: the prompt's tokens, or why there are none."""

    request_id: str
    token_ids: tuple[int, ...]
    matcher: GrammarMatcher | None = None
    """Of the request's grammar, if it has one."""
    error: EngineError | None = None


_GRAMMAR_STACK_BYTES = 192 << 20
"""The compiler calls itself for each rule that names another. The largest grammar that is allowed (see
`grammar_compiler`) may take some 100 MiB so, and a stack that is too small ends the whole program. Memory that is not
used is not taken."""


class Intake:
    """The workers; used by one thread. `deliver` is called on theirs with each answer."""

    def __init__(self, deliver: Callable[[Prepared], object]) -> None:
        self._deliver = deliver
        self._prompts = _Worker("layby-intake", deliver)
        self._grammars: _Worker | None = None

    def prepare(self, task: PrepareTask) -> None:
        """Queue a request; the answer comes to `deliver`."""
        if task.request.grammar is None:
            self._prompts.put(task)
            return
        if self._grammars is None:
            before = threading.stack_size(_GRAMMAR_STACK_BYTES)
            try:
                self._grammars = _Worker("layby-grammars", self._deliver)
            finally:
                threading.stack_size(before)
        self._grammars.put(task)

    def close(self) -> None:
        """Stop after the requests at hand; queued ones get no answer."""
        self._prompts.close()
        if self._grammars is not None:
            self._grammars.close()


class _Worker:
    """A thread that answers one task after the other."""

    def __init__(self, name: str, deliver: Callable[[Prepared], object]) -> None:
        self._deliver = deliver
        self._tasks: queue.SimpleQueue[PrepareTask | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, task: PrepareTask) -> None:
        self._tasks.put(task)

    def close(self) -> None:
        self._tasks.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._deliver(answer(task))


def answer(task: PrepareTask) -> Prepared:
    """Read a prompt; what is wrong with it is part of the answer."""
    request_id = task.request.request_id
    try:
        return Prepared(request_id, _tokenize(task), task.grammars.matcher_for(task.request))
    except EngineError as error:
        return Prepared(request_id, (), error=error)
    except Exception as error:  # noqa: BLE001 - a prompt must never end the worker
        reason = f"the prompt could not be read: {type(error).__name__}: {error}"
        return Prepared(request_id, (), error=RequestError(reason))


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
        case Chat(messages=messages, continues=continues):
            return tuple(encode_chat(tokenizer, template, messages, continues=continues))
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
