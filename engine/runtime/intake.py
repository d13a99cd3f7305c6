"""Turns prompts into tokens and compiles grammars, off the engine thread, in order of arrival.

One worker applies templates and tokenises. It also answers questions about text, in turn (`engine.texts`). Requests
with a grammar have workers of their own, one for what takes little and a few for what may take long: a costly grammar
holds up no prompt, and no other grammar. The tokenizer and the compiler release the interpreter lock, so neither holds
up the running chats.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace

from engine.api import (
    Chat,
    Grammar,
    Infill,
    Prompt,
    Request,
    Text,
    TextAnswer,
    TextQuestion,
    TokenIds,
    Wanted,
)
from engine.errors import (
    ContextLengthExceeded,
    EngineError,
    EngineStopped,
    InvalidRequest,
    ModelError,
    RequestError,
)
from engine.runtime.grammar_compiler import GrammarCompiler, MayTakeLong
from engine.runtime.grammar_matcher import GrammarMatcher
from engine.runtime.grammar_trial import STACK_BYTES
from engine.runtime.reply_wishes import ReplyWishes
from engine.runtime.text_questions import answer_question, check_ids
from engine.text.chat_prompt import encode_rendered, render_chat
from engine.text.chat_template import ChatTemplate
from engine.text.replies.call_grammar import CallWish
from engine.text.replies.reply_format import ReplyPlan
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
class TextTask:
    """A question, what answers it, and where the answer goes."""

    question: TextQuestion
    tokenizer: Tokenizer
    template: ChatTemplate
    answer: Future[TextAnswer]


@dataclass(frozen=True, slots=True)
class Prepared:
    """The worker's answer: the prompt's tokens, or why there are none."""

    request_id: str
    token_ids: tuple[int, ...]
    matcher: GrammarMatcher | None = None
    """Of the request's grammar, if it has one."""
    grammar: Grammar | None = None
    """The request's own, or the one of the calls that it must make."""
    plan: ReplyPlan | None = None
    """How its reply is told apart; None: all of it is text."""
    error: EngineError | None = None


_MOST_COMPILING = 4
"""Grammars that may take long and are compiled at once."""


class Intake:
    """The workers. `deliver` is called on their threads with each answer."""

    def __init__(self, deliver: Callable[[Prepared], object]) -> None:
        self._prompts = _Worker("layby-intake", deliver)
        self._grammars = _Grammars(deliver)

    def prepare(self, task: PrepareTask) -> None:
        """Queue a request; the answer comes to `deliver`. Engine thread."""
        (self._grammars if _has_grammar(task.request) else self._prompts).put(task)

    def ask(self, task: TextTask) -> None:
        """Queue a question; the answer, or an EngineError, comes to its future. Any thread."""
        self._prompts.put(task)

    def close(self) -> None:
        """Stop after what is at hand; queued prompts get no answer, and questions are told that the engine stopped."""
        self._prompts.close()
        self._grammars.close()


def _has_grammar(request: Request) -> bool:
    """Whether there may be one to compile: its own, or that of the calls it is to make."""
    prompt = request.prompt
    return request.grammar is not None or (
        isinstance(prompt, Chat) and bool(prompt.tools) and CallWish.of(prompt) is not None
    )


class _Worker:
    """A thread that does one task after the other."""

    def __init__(self, name: str, deliver: Callable[[Prepared], object]) -> None:
        self._deliver = deliver
        self._tasks: queue.SimpleQueue[PrepareTask | TextTask | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, task: PrepareTask | TextTask) -> None:
        self._tasks.put(task)
        if not self._thread.is_alive():
            self._end_questions()

    def close(self) -> None:
        self._tasks.put(None)
        self._thread.join()
        self._end_questions()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            if isinstance(task, TextTask):
                _answer_text(task)
            else:
                self._deliver(answer(task))

    def _end_questions(self) -> None:
        """Any thread, once the worker has ended."""
        with suppress(queue.Empty):
            while True:
                task = self._tasks.get_nowait()
                if isinstance(task, TextTask) and task.answer.set_running_or_notify_cancel():
                    task.answer.set_exception(EngineStopped("the engine has shut down"))


class _Grammars:
    """A thread for grammars that take little; what may take long it hands on to a few others."""

    def __init__(self, deliver: Callable[[Prepared], object]) -> None:
        self._deliver = deliver
        lock = threading.Lock()
        self._quick = _Pool(self._do_quick, lock, most=1)
        self._slow = _Pool(self._do, lock, most=_MOST_COMPILING)

    def put(self, task: PrepareTask) -> None:
        self._quick.put(task)

    def close(self) -> None:
        self._quick.close()
        self._slow.close()

    def _do_quick(self, task: PrepareTask) -> None:
        try:
            prepared = answer(replace(task, grammars=task.grammars.quick()))
        except MayTakeLong:
            self._slow.put(task)
        else:
            self._deliver(prepared)

    def _do(self, task: PrepareTask) -> None:
        self._deliver(answer(task))


class _Pool:
    """Threads for grammars: another one whenever all are busy, up to `most`. One thread puts tasks in."""

    def __init__(
        self, work: Callable[[PrepareTask], object], lock: threading.Lock, *, most: int
    ) -> None:
        """`lock` is held where a thread is made: the size of its stack is set for the whole program."""
        self._work = work
        self._lock = lock
        self._most = most
        self._tasks: queue.SimpleQueue[PrepareTask | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._num_open = 0
        """Tasks that have not been done yet."""

    def put(self, task: PrepareTask) -> None:
        with self._lock:
            self._num_open += 1
            if len(self._threads) < min(self._num_open, self._most):
                before = threading.stack_size(STACK_BYTES)
                try:
                    thread = threading.Thread(target=self._run, name="layby-grammars", daemon=True)
                    thread.start()
                finally:
                    threading.stack_size(before)
                self._threads.append(thread)
        self._tasks.put(task)

    def close(self) -> None:
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                self._work(task)
            finally:
                with self._lock:
                    self._num_open -= 1


def answer(task: PrepareTask) -> Prepared:
    """Read a prompt; what is wrong with it is part of the answer. Raises MayTakeLong as the task's compiler does."""
    request_id = task.request.request_id
    try:
        return _prepared(task)
    except MayTakeLong:
        raise
    except EngineError as error:
        return Prepared(request_id, (), error=error)
    except Exception as error:  # noqa: BLE001 - a prompt must never end the worker
        reason = f"the prompt could not be read: {type(error).__name__}: {error}"
        return Prepared(request_id, (), error=RequestError(reason))


def _answer_text(task: TextTask) -> None:
    """Answer a question, unless nobody waits for it any more; what is wrong with it is the answer."""
    if not task.answer.set_running_or_notify_cancel():
        return
    try:
        task.answer.set_result(answer_question(task.question, task.tokenizer, task.template))
    except ModelError as error:
        task.answer.set_exception(RequestError(f"the model's own rules do not take this: {error}"))
    except EngineError as error:
        task.answer.set_exception(error)
    except Exception as error:  # noqa: BLE001 - a question must never end the worker
        reason = f"the text could not be read: {type(error).__name__}: {error}"
        task.answer.set_exception(RequestError(reason))


def _prepared(task: PrepareTask) -> Prepared:
    request = task.request
    read = _read(request.prompt, task.tokenizer, task.template)
    check_fits(len(read.token_ids), task.window_tokens, request.wants)
    wishes = ReplyWishes(task.template.reply, task.tokenizer, task.grammars)
    plan = wishes.plan_for(request, read.plan)
    grammar = wishes.grammar_for(request, plan or read.plan)
    matcher = wishes.matcher_for(request, grammar)
    return Prepared(request.request_id, read.token_ids, matcher, grammar, plan)


def check_fits(prompt_tokens: int, window_tokens: int, wanted: Wanted) -> None:
    """Raises ContextLengthExceeded for a prompt that leaves no room for a reply; an embedding needs none."""
    if wanted is Wanted.EMBEDDING and prompt_tokens > window_tokens:
        raise ContextLengthExceeded(
            f"the text has {prompt_tokens:,} tokens, but a request can hold {window_tokens:,}; cut it into parts, or "
            "load the model with a larger context",
            needed_tokens=prompt_tokens,
            limit_tokens=window_tokens,
        )
    if wanted is Wanted.TEXT and prompt_tokens >= window_tokens:
        raise ContextLengthExceeded(
            f"the prompt is too long: it has {prompt_tokens:,} tokens and a reply needs at least one more, but a "
            f"request can hold {window_tokens:,}; shorten the prompt, or load the model with a larger context",
            needed_tokens=prompt_tokens,
            limit_tokens=window_tokens,
        )


@dataclass(frozen=True, slots=True)
class _Read:
    """A prompt's tokens, and of a chat's how the reply to it is to be read."""

    token_ids: tuple[int, ...]
    plan: ReplyPlan | None = None


def tokenize(prompt: Prompt, tokenizer: Tokenizer, template: ChatTemplate) -> tuple[int, ...]:
    """A prompt's tokens; any thread. Raises RequestError for one that the model's template does not take."""
    return _read(prompt, tokenizer, template).token_ids


def _read(prompt: Prompt, tokenizer: Tokenizer, template: ChatTemplate) -> _Read:
    try:
        return _encode(prompt, tokenizer, template)
    except (
        ModelError
    ) as error:  # the model serves other prompts: it is this one that it cannot take
        raise RequestError(f"the model's own rules do not take this prompt: {error}") from error


def _encode(prompt: Prompt, tokenizer: Tokenizer, template: ChatTemplate) -> _Read:
    match prompt:
        case Chat():
            rendered = render_chat(template, prompt)
            return _Read(encode_rendered(tokenizer, rendered), rendered.plan)
        case Text(text=text, reads_control=reads_control):
            ids = tokenizer.encode(text, parse_special=reads_control, add_special=True)
            return _Read(tuple(ids) or (tokenizer.between_texts if prompt.begins_anew else ()))
        case Infill():
            return _Read(_encode_gap(prompt, tokenizer))
        case TokenIds(ids=ids):
            check_ids(ids, tokenizer, "prompt")
            return _Read(ids)


def _encode_gap(prompt: Infill, tokenizer: Tokenizer) -> tuple[int, ...]:
    """BEFORE text AFTER text GAP. Raises InvalidRequest for a model that has no such tokens."""
    marks = tokenizer.fill_in
    if marks is None:
        raise InvalidRequest(
            "a text with a suffix needs a model with fill-in-the-middle tokens, as code models have, and the one "
            "loaded has none; leave the suffix out or load such a model",
            param="suffix",
        )
    ids = [
        *(tokenizer.encode(prompt.context) if prompt.context else ()),
        marks.before_id,
        *tokenizer.encode(prompt.before),
        marks.after_id,
        *tokenizer.encode(prompt.after),
        marks.gap_id,
    ]
    return tuple(tokenizer.begun(ids))
