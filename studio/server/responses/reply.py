"""Engine events -> OpenAI's response, in one piece and as its events: an item for each part. Server thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from engine.api import Finished, FinishReason, Started, TokenDelta
from engine.errors import EngineError
from studio.server.errors import ApiError, error_body
from studio.server.framing import NAMED_EVENTS, Framing, Json
from studio.server.replies import chat_logprobs
from studio.server.reply_parts import Part, PartKind, PartStep, ReplyParts, StepKind
from studio.server.reply_shape import ReplyEnd
from studio.server.responses.items import sealed

_PREFIXES = {PartKind.TEXT: "msg", PartKind.REASONING: "rs", PartKind.CALL: "fc"}
_RUNNING, _DONE, _CUT = "in_progress", "completed", "incomplete"


class ResponsesReply:
    """One response; there is always one choice. Every event is numbered."""

    def __init__(
        self,
        blank: Json,
        *,
        has_logprobs: bool = False,
        seals_thoughts: bool = False,
        keep: Callable[[Json], None] | None = None,
    ) -> None:
        """`blank` is the response before anything has been written; `keep` hears it when it has ended."""
        self._blank = blank
        self._has_logprobs = has_logprobs
        self._seals_thoughts = seals_thoughts
        self._keep = keep
        self._parts = ReplyParts()
        self._num_events = 0
        self._has_begun = False

    @property
    def framing(self) -> Framing:
        return NAMED_EVENTS

    def opening(self, index: int, started: Started | None) -> Sequence[Json]:
        self._has_begun = True
        return (
            self._event("response.created", response=self._blank),
            self._event("response.in_progress", response=self._blank),
        )

    def delta(self, index: int, event: TokenDelta) -> Sequence[Json]:
        return [each for step in self._parts.add(event) for each in self._tell(step, _DONE)]

    def sign_of_life(self, index: int) -> Sequence[Json]:
        """With all that has been told: clients take it for the response as it now is."""
        response = {**self._blank, "output": self._items(self._parts, _RUNNING)}
        return (self._event("response.in_progress", response=response),)

    def closing(self, index: int, finished: Finished, end: ReplyEnd | None) -> Sequence[Json]:
        assert end is not None, "a response has one choice"
        self._parts.finished = finished
        response = self.whole((self._parts,), end)
        last = [
            each for step in self._parts.close() for each in self._tell(step, response["status"])
        ]
        return (*last, self._event(f"response.{response['status']}", response=response))

    def failure(self, error: ApiError | EngineError) -> Sequence[Json]:
        """Clients that know no failed response, or do not look, raise the error that follows it."""
        wire = error_body(error)["error"]
        failed = {
            **self._blank,
            "status": "failed",
            "error": {"code": wire["code"], "message": wire["message"]},
            "output": self._items(self._parts, _CUT),
        }
        opening = () if self._has_begun else self.opening(0, None)
        return (
            *opening,
            self._event("response.failed", response=failed),
            self._event(
                "error",
                code=wire["code"],
                message=wire["message"],
                param=wire["param"],
                error=wire,
            ),
        )

    def whole(self, choices: Sequence[ReplyParts], end: ReplyEnd) -> Json:
        (reply,) = choices
        is_cut = reply.reason is FinishReason.LENGTH
        status = _CUT if is_cut else _DONE
        response = {
            **self._blank,
            "status": status,
            "completed_at": None if is_cut else int(time.time()),
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            "output": self._items(reply, status),
            "usage": _usage(end, reply.reasoning_tokens),
            **end.park_fields,
        }
        if self._keep is not None:
            self._keep(response)
        return response

    # --- events

    def _event(self, kind: str, **fields: object) -> Json:
        number = self._num_events
        self._num_events += 1
        return {"type": kind, "sequence_number": number, **fields}

    def _tell(self, step: PartStep, status: str) -> list[Json]:
        """`status`: how a part that is closed has ended."""
        place = {"item_id": self._id_of(step.part), "output_index": step.part.number}
        match step.kind:
            case StepKind.OPENED:
                return self._opened(step.part, place)
            case StepKind.GREW:
                return self._grew(step, place)
        return self._closed(step.part, place, status)

    def _opened(self, part: Part, place: Json) -> list[Json]:
        item = {**self._item(part, _RUNNING), **_empty(part)}
        added = self._event(
            "response.output_item.added", output_index=place["output_index"], item=item
        )
        if part.kind is PartKind.CALL:
            return [added]
        blank = Part(kind=part.kind, number=part.number)
        content = self._content(blank)
        return [
            added,
            self._event("response.content_part.added", **place, content_index=0, part=content),
        ]

    def _grew(self, step: PartStep, place: Json) -> list[Json]:
        if step.part.kind is PartKind.CALL:
            kind = "response.function_call_arguments.delta"
            return [self._event(kind, **place, delta=step.text)]
        place = {**place, "content_index": 0, "delta": step.text}
        if step.part.kind is PartKind.REASONING:
            return [self._event("response.reasoning_text.delta", **place)]
        logprobs = chat_logprobs(step.logprobs) if self._has_logprobs else []
        return [self._event("response.output_text.delta", **place, logprobs=logprobs)]

    def _closed(self, part: Part, place: Json, status: str) -> list[Json]:
        item = self._item(part, status)
        last = {"output_index": place["output_index"], "item": item}
        if part.kind is PartKind.CALL:
            call = {**place, "name": part.name, "arguments": part.text}
            told = [("response.function_call_arguments.done", call)]
        else:
            content, place = self._content(part), {**place, "content_index": 0}
            is_text = part.kind is PartKind.TEXT
            text = {**place, "text": content["text"]}
            if is_text:
                text["logprobs"] = content["logprobs"]
            told = [
                (f"response.{'output' if is_text else 'reasoning'}_text.done", text),
                ("response.content_part.done", {**place, "part": content}),
            ]
        told.append(("response.output_item.done", last))
        return [self._event(kind, **fields) for kind, fields in told]

    # --- items

    def _items(self, reply: ReplyParts, status: str) -> list[Json]:
        """All are complete but the last one, which may have been cut off."""
        last = len(reply.parts) - 1
        return [self._item(part, status if part.number == last else _DONE) for part in reply.parts]

    def _item(self, part: Part, status: str) -> Json:
        base = {"id": self._id_of(part), "status": status}
        match part.kind:
            case PartKind.TEXT:
                content = [self._content(part)]
                return {**base, "type": "message", "role": "assistant", "content": content}
            case PartKind.REASONING:
                content = [self._content(part)]
                seal = {"encrypted_content": sealed(part.text)} if self._seals_thoughts else {}
                return {**base, "type": "reasoning", "summary": [], "content": content, **seal}
        return {
            **base,
            "type": "function_call",
            "call_id": part.call_id,
            "name": part.name,
            "arguments": part.text,
        }

    def _content(self, part: Part) -> Json:
        if part.kind is PartKind.REASONING:
            return {"type": "reasoning_text", "text": part.text}
        logprobs = chat_logprobs(part.logprobs) if self._has_logprobs else []
        return {
            "type": "output_text",
            "text": part.text,
            "annotations": [],
            "logprobs": logprobs,
        }

    def _id_of(self, part: Part) -> str:
        name = str(self._blank["id"]).partition("_")[2]
        return f"{_PREFIXES[part.kind]}_{name}{part.number:02d}"


def _empty(part: Part) -> Json:
    """What an item has that has only begun."""
    return {"arguments": ""} if part.kind is PartKind.CALL else {"content": []}


def _usage(end: ReplyEnd, reasoning_tokens: int) -> Json:
    return {
        "input_tokens": end.prompt_tokens,
        "input_tokens_details": {"cached_tokens": end.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": end.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": reasoning_tokens},
        "total_tokens": end.prompt_tokens + end.completion_tokens,
    }
