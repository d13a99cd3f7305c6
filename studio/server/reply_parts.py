"""A reply in parts, in the order in which the model wrote them: its thoughts, its text, the tools that it calls.

What protocols make of them, in one piece or as a stream, is told elsewhere. Server thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from engine.api import Finished, FinishReason, TokenDelta, TokenLogprob, ToolCallDelta


class PartKind(Enum):
    """What a part of a reply is."""

    REASONING = "reasoning"
    TEXT = "text"
    CALL = "call"


@dataclass(slots=True, kw_only=True)
class Part:
    """One part so far."""

    kind: PartKind
    number: int
    """Its place in the reply, from 0."""
    pieces: list[str] = field(default_factory=list)
    """Its text; of a call its arguments, a JSON object as text."""
    logprobs: list[TokenLogprob] = field(default_factory=list)
    """Of text."""
    call_index: int = 0
    call_id: str = ""
    name: str = ""

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class StepKind(Enum):
    """What happens to a part; each is opened once, and closed before the next one opens."""

    OPENED = "opened"
    GREW = "grew"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartStep:
    """A step of the newest part. `text` and `logprobs` are what it grew by."""

    kind: StepKind
    part: Part
    text: str = ""
    logprobs: tuple[TokenLogprob, ...] = ()


class ThoughtCount:
    """Tokens of a reply that its thoughts took. Those that show nothing belong to what is told next."""

    def __init__(self) -> None:
        self.tokens = 0
        self._num_undecided = 0

    def add(self, delta: TokenDelta) -> None:
        self._num_undecided += len(delta.token_ids)
        if delta.text or delta.reasoning or delta.tool_calls:
            self.tokens += self._num_undecided if delta.reasoning else 0
            self._num_undecided = 0


class ReplyParts:
    """One reply being put together."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.logprobs: list[TokenLogprob] = []
        """Of all tokens, whatever part they belong to."""
        self.token_ids: list[int] = []
        self.embedding: tuple[float, ...] = ()
        """Of a request that wants one."""
        self.finished: Finished | None = None
        self._is_open = False
        self._undecided: tuple[TokenLogprob, ...] = ()
        """Of tokens before a text, which have none themselves."""
        self._thoughts = ThoughtCount()

    def add(self, delta: TokenDelta) -> list[PartStep]:
        """Take in what is new; what it does to the parts."""
        steps: list[PartStep] = []
        self.token_ids.extend(delta.token_ids)
        self.logprobs.extend(delta.logprobs)
        logprobs = self._undecided + delta.logprobs
        if delta.reasoning:
            self._part_of(PartKind.REASONING, steps)
            self._grow(delta.reasoning, (), steps)
        if delta.text or (delta.logprobs and self._is_in(PartKind.TEXT)):
            self._part_of(PartKind.TEXT, steps)
            self._grow(delta.text, logprobs, steps)
            logprobs = ()
        is_told = delta.text or delta.reasoning or delta.tool_calls
        self._undecided = () if is_told else logprobs
        self._thoughts.add(delta)
        for call in delta.tool_calls:
            self._add_call(call, steps)
        return steps

    def close(self) -> list[PartStep]:
        """The reply has ended; what that does to its last part."""
        steps: list[PartStep] = []
        self._close(steps)
        return steps

    def text_of(self, kind: PartKind) -> str:
        """All text of one kind, in one piece."""
        return "".join(part.text for part in self.parts if part.kind is kind)

    @property
    def reasoning_tokens(self) -> int:
        return self._thoughts.tokens

    @property
    def reason(self) -> FinishReason:
        """Why it ended; only of a reply that has."""
        assert self.finished is not None
        return self.finished.reason

    @property
    def calls(self) -> list[Part]:
        return [part for part in self.parts if part.kind is PartKind.CALL]

    def _is_in(self, kind: PartKind) -> bool:
        return self._is_open and self.parts[-1].kind is kind

    def _part_of(self, kind: PartKind, steps: list[PartStep]) -> None:
        if not self._is_in(kind):
            self._open(Part(kind=kind, number=len(self.parts)), steps)

    def _add_call(self, call: ToolCallDelta, steps: list[PartStep]) -> None:
        if not self._is_in(PartKind.CALL) or self.parts[-1].call_index != call.index:
            part = Part(
                kind=PartKind.CALL,
                number=len(self.parts),
                call_index=call.index,
                call_id=call.call_id,
                name=call.name,
            )
            self._open(part, steps)
        if call.arguments:
            self._grow(call.arguments, (), steps)

    def _open(self, part: Part, steps: list[PartStep]) -> None:
        self._close(steps)
        self.parts.append(part)
        self._is_open = True
        steps.append(PartStep(kind=StepKind.OPENED, part=part))

    def _grow(self, text: str, logprobs: tuple[TokenLogprob, ...], steps: list[PartStep]) -> None:
        part = self.parts[-1]
        part.pieces.append(text)
        part.logprobs.extend(logprobs)
        steps.append(PartStep(kind=StepKind.GREW, part=part, text=text, logprobs=logprobs))

    def _close(self, steps: list[PartStep]) -> None:
        if self._is_open:
            self._is_open = False
            steps.append(PartStep(kind=StepKind.CLOSED, part=self.parts[-1]))
