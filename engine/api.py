"""The engine's one door: what a client may ask, and every event it may hear.

Standard library only. The window and the HTTP server both use exactly this, through `engine.client.EngineClient`. All
types are immutable messages and may cross threads; `EnginePort` methods may be called from any thread and never wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from engine.bonds import RequestGroup as RequestGroup
from engine.bonds import Stay as Stay
from engine.checks import check_range
from engine.errors import EngineError, InvalidRequest
from engine.grammar import Grammar as Grammar
from engine.grammar import GrammarKind as GrammarKind
from engine.model_info import ModelInfo as ModelInfo
from engine.options import Device as Device
from engine.options import KvType as KvType
from engine.options import LoadModel as LoadModel
from engine.options import LoadOptions as LoadOptions
from engine.options import UnloadModel as UnloadModel
from engine.prompts import Chat as Chat
from engine.prompts import ChatMessage as ChatMessage
from engine.prompts import Infill as Infill
from engine.prompts import Prompt as Prompt
from engine.prompts import Text as Text
from engine.prompts import TokenIds as TokenIds
from engine.prompts import Tool as Tool
from engine.prompts import ToolCall as ToolCall
from engine.prompts import ToolChoice as ToolChoice
from engine.runs import (
    ForgetSaved,
    ParkReason,
    SteeringCommand,
    Suspend,
)
from engine.runs import Origin as Origin
from engine.runs import PoolUsage as PoolUsage
from engine.runs import Priority as Priority
from engine.sampling_params import SAMPLING_BOUNDS as SAMPLING_BOUNDS
from engine.sampling_params import SamplingParams as SamplingParams
from engine.snapshot import EngineSnapshot as EngineSnapshot
from engine.snapshot import EngineState as EngineState
from engine.texts import Detokenize as Detokenize
from engine.texts import Render as Render
from engine.texts import ShowTemplate as ShowTemplate
from engine.texts import TextAnswer as TextAnswer
from engine.texts import TextQuestion as TextQuestion
from engine.texts import Tokenize as Tokenize


class Wanted(Enum):
    """What a request is to give."""

    TEXT = "text"
    EMBEDDING = "embedding"
    """One vector for the prompt, told by `Embedded`; only of a model that is made for that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One thing to generate. `request_id` must be unique among requests alive."""

    request_id: str
    origin: Origin
    prompt: Prompt
    wants: Wanted = Wanted.TEXT
    sampling: SamplingParams = field(default_factory=SamplingParams)
    max_tokens: int | None = None
    """Most tokens to generate; None: as many as the context has room for."""
    min_tokens: int = 0
    """Least tokens of the reply before a token may end it; a stop string, or a grammar at its end, still does."""
    stop: tuple[str, ...] = ()
    """Generation ends where one of these appears, in the text or in a call's arguments; that ends before it."""
    stop_ids: tuple[int, ...] = ()
    """Tokens that end the reply as the model's own do, also where those are ignored."""
    tells_prompt: bool = False
    """Log probabilities of the prompt's tokens are told too, as many as `sampling.logprobs` says; see `PromptRead`."""
    ignore_eos: bool = False
    """Generate on past the model's end-of-reply tokens (for measuring)."""
    priority: Priority = Priority.NORMAL
    max_wait_s: float | None = None
    """Most seconds it waits outside the pool, in line and parked taken together; then it fails."""
    group: RequestGroup | None = None
    """What it is asked together with; None: alone."""
    grammar: Grammar | None = None
    """What the reply must match; None: anything."""
    tells_parts: bool = False
    """Reasoning and tool calls come apart from the text, in the fields of `TokenDelta`, where the model's template
    shows how it writes them; False: everything is text, as the model wrote it."""
    is_durable: bool = False
    """While it is parked its state is also on disk, where the model was loaded with a folder for that."""
    resumes: bool = False
    """Go on with the state on disk of the request of this id, as that one was asked; see `Resumed`."""
    stays: Stay | None = None
    """Where the reply ends with TOOL_CALLS it is kept after its end for one that follows; an abort lets go of it."""
    follows: str = ""
    """A request that stays: this one goes on with its state, as far as their tokens agree, and before the whole line.
    Where none of that id stays, it is a request like any other."""

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 0:
            raise InvalidRequest(
                f"max_tokens is {self.max_tokens}, allowed is 0 and more; leave it out for no limit",
                param="max_tokens",
            )
        most = 1 << 30 if self.max_tokens is None else self.max_tokens
        check_range("min_tokens", self.min_tokens, 0, most)
        if self.max_wait_s is not None:
            check_range("max_wait_s", self.max_wait_s, 0, 1e9)
        if self.tells_prompt and self.sampling.logprobs is None:
            raise InvalidRequest(
                "tells_prompt needs logprobs; give a number, 0 for the prompt's own tokens alone",
                param="logprobs",
            )
        if any(not text for text in self.stop):
            raise InvalidRequest("stop has an empty string; leave it out", param="stop")
        if self.group is not None and (self.stays is not None or self.follows):
            raise InvalidRequest("a request of a group can neither stay nor follow; ask it alone")


class FinishReason(Enum):
    """Why a request ended without an error."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    """The model ended its turn by calling tools; only where the request tells parts."""
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogprob:
    """One token and its natural-log probability under the model, before sampling filters.

    NaN for the first token of a prompt: nothing stands before it.
    """

    token_id: int
    text: str
    token_bytes: bytes
    logprob: float
    top: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a request cost. Tokens are counted once, however often the request was parked."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    queued_s: float
    prefill_s: float
    decode_s: float
    parked_s: float = 0.0
    num_parks: int = 0
    num_recomputes: int = 0
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The request got a slot and its prompt is being read."""

    request_id: str
    prompt_tokens: int
    cached_tokens: int
    queued_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptProgress:
    """How much of the prompt has been read; sent per chunk while the prompt needs more than one step."""

    request_id: str
    computed_tokens: int
    prompt_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRead:
    """The log probability of every token of the prompt, once, before the first of the reply."""

    request_id: str
    tokens: tuple[TokenLogprob, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """The prompt as one vector of length 1; the end follows."""

    request_id: str
    values: tuple[float, ...]
    """Each is exact as float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallDelta:
    """More of a tool call that the model is writing. The first of a call has its id and whole name."""

    index: int
    """Which of the reply's calls, from 0."""
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    """The next piece of the JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenDelta:
    """New text. `text` is whole characters and may be empty while a character or a stop string is undecided.

    `reasoning` and `tool_calls` are told apart only where the request asks for it (`Request.tells_parts`).
    """

    request_id: str
    text: str
    token_ids: tuple[int, ...]
    logprobs: tuple[TokenLogprob, ...] = ()
    reasoning: str = ""
    tool_calls: tuple[ToolCallDelta, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """The request gave its room to others and comes back by itself, from the same token."""

    request_id: str
    held_tokens: int
    """Tokens it needs room for when it comes back."""
    place: int
    """1 is the head of the line; 0: parked by hand, in no line."""
    reason: ParkReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A parked request is back. `recomputed_tokens` are being read again (0 if its state was kept)."""

    request_id: str
    parked_s: float
    recomputed_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A request goes on with the state on disk of an earlier one. `text` and `token_ids` are its reply until then.

    It is parked at first, and comes back as any other.
    """

    request_id: str
    text: str
    token_ids: tuple[int, ...]
    reasoning: str = ""
    tool_calls: tuple[ToolCallDelta, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Terminal: the request ended as asked (or was aborted)."""

    request_id: str
    reason: FinishReason
    usage: Usage
    stop_text: str = ""
    """The one of `Request.stop` that has ended it, with `FinishReason.STOP`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Terminal: the request ended by an error. `partial` tells whether text had been sent before."""

    request_id: str
    error: EngineError
    partial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChanged:
    """The engine's model or its state changed. `progress` is 0 to 1 while LOADING.

    `error` is set when FAILED; and when READY where a load was refused and the model that was there stays, with all
    who use it.
    """

    state: EngineState
    model: ModelInfo | None
    progress: float = 0.0
    error: EngineError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskTrouble:
    """Parked state cannot be kept on disk, said once for each load; parking goes on in memory."""

    error: EngineError


RequestEvent = (
    Started
    | PromptProgress
    | PromptRead
    | Embedded
    | TokenDelta
    | Parked
    | Restored
    | Resumed
    | Finished
    | Failed
)
EngineEvent = RequestEvent | ModelChanged | DiskTrouble


Command = LoadModel | UnloadModel | Suspend | ForgetSaved | SteeringCommand


Listener = Callable[[tuple[EngineEvent, ...]], threading.Event | None]
"""May return what it sets once it has passed the events on: a step that takes every core waits a little for that."""
Unsubscribe = Callable[[], None]


class EnginePort(Protocol):
    """What every engine (the real one and the tests' fake one) promises. All methods return at once."""

    def submit(self, request: Request) -> None:
        """Queue a request. Never raises for capacity; exactly one Finished or Failed follows."""

    def abort(self, request_id: str) -> None:
        """End a request. Idempotent, unknown ids are ignored; Finished(ABORTED) follows if it was alive."""

    def subscribe(self, listener: Listener) -> Unsubscribe:
        """Call `listener` on the engine thread, at most once per step, with that step's events; it must not block."""

    def control(self, command: Command) -> None:
        """Ask for a change of the engine itself; the outcome arrives as an event."""

    def snapshot(self) -> EngineSnapshot:
        """The last published state; never waits."""

    def count_tokens(self, prompt: Prompt) -> int | None:
        """How many tokens the loaded model makes of a prompt; None if no model is loaded.

        The one method that takes its time, on the thread that calls it. Raises RequestError for a prompt that the
        model's template does not take.
        """

    def read_text(self, question: TextQuestion) -> Future[TextAnswer]:
        """Have the loaded model's tokenizer or template answer, in turn with prompts that are being read.

        The future fails with RequestError for what they do not take, ModelUnavailable without a model and
        EngineStopped.
        """

    def shutdown(self) -> None:
        """End every request (ModelUnavailable), free the model and stop the thread; returns when it has ended."""
