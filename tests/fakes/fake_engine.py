"""An EnginePort that plays a script: for tests of the studio and the server, with no model and no thread of its own.

Unscripted, every request is answered at once, on the calling thread, by one delta per word of `reply`. With
`auto=False` nothing happens until the test calls `start`, `say`, `finish`, `fail` or `emit`.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

from engine.api import (
    Chat,
    Command,
    Detokenize,
    Embedded,
    EngineEvent,
    EngineSnapshot,
    EngineState,
    Failed,
    Finished,
    FinishReason,
    Infill,
    Listener,
    LoadModel,
    LoadOptions,
    ModelChanged,
    ModelInfo,
    Parked,
    PoolUsage,
    Prompt,
    Render,
    Request,
    Restored,
    ShowTemplate,
    Started,
    Text,
    TextAnswer,
    TextQuestion,
    TokenDelta,
    TokenIds,
    Tokenize,
    ToolCallDelta,
    UnloadModel,
    Unsubscribe,
    Usage,
    Wanted,
)
from engine.errors import EngineError, ModelUnavailable
from engine.runs import Holding, ParkCause, ParkReason, ParkUsage, Run

TINY_MODEL = ModelInfo(
    name="tiny",
    path=Path("/models/tiny.gguf"),
    architecture="llama",
    quantization="F32",
    parameters=1000,
    size_bytes=4000,
    context_tokens=2048,
    has_chat_template=True,
    created_s=1_700_000_000,
    embedding_size=3,
)


class FakeEngine:
    """Everything a test wants to look at is a public attribute: `requests`, `aborted`, `commands`."""

    def __init__(
        self, *, reply: str = "Hello there, friend.", auto: bool = True, ready: bool = True
    ) -> None:
        self.reply = reply
        self.auto = auto
        self.requests: dict[str, Request] = {}
        self.aborted: list[str] = []
        self.commands: list[Command] = []
        self.alive: dict[str, int] = {}
        self._listeners: list[Listener] = []
        self._snapshot = EngineSnapshot()
        if ready:
            self._snapshot = self.ready_snapshot(TINY_MODEL)

    @staticmethod
    def ready_snapshot(model: ModelInfo) -> EngineSnapshot:
        return EngineSnapshot(
            state=EngineState.READY,
            model=model,
            options=LoadOptions(pool_tokens=2048),
            window_tokens=2048,
            pool=PoolUsage(total_pages=64, free_pages=64, page_tokens=32, page_bytes=1024),
        )

    def submit(self, request: Request) -> None:
        self.requests[request.request_id] = request
        self.alive[request.request_id] = 0
        if self.auto and request.wants is Wanted.EMBEDDING:
            self.embed(request.request_id)
        elif self.auto:
            self.start(request.request_id)
            for word in self.reply.split(" "):
                self.say(
                    request.request_id, word if word == self.reply.split(" ")[0] else " " + word
                )
            self.finish(request.request_id)

    def abort(self, request_id: str) -> None:
        self.aborted.append(request_id)
        if request_id in self.alive:
            self.finish(request_id, FinishReason.ABORTED)

    def subscribe(self, listener: Listener) -> Unsubscribe:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def control(self, command: Command) -> None:
        self.commands.append(command)
        if not self.auto:
            return
        if isinstance(command, LoadModel):
            self.emit(ModelChanged(state=EngineState.LOADING, model=TINY_MODEL, progress=0.5))
            self._snapshot = self.ready_snapshot(TINY_MODEL)
            self.emit(ModelChanged(state=EngineState.READY, model=TINY_MODEL, progress=1.0))
        elif isinstance(command, UnloadModel):
            self._snapshot = EngineSnapshot()
            self.emit(ModelChanged(state=EngineState.NO_MODEL, model=None))

    def snapshot(self) -> EngineSnapshot:
        return self._snapshot

    def count_tokens(self, prompt: Prompt) -> int | None:
        """A token for each word."""
        match prompt:
            case _ if self._snapshot.state is not EngineState.READY:
                return None
            case Chat(messages=messages, tools=tools):
                declared = (f"{one.name} {one.description} {one.parameters}" for one in tools)
                texts = (*(message.content for message in messages), *declared)
                return sum(len(text.split()) for text in texts)
            case Text(text=text):
                return len(text.split())
            case Infill(before=before, after=after):
                return len(before.split()) + len(after.split())
            case TokenIds(ids=ids):
                return len(ids)

    def read_text(self, question: TextQuestion) -> Future[TextAnswer]:
        """A token for each word, whose id is its length; a chat is its messages, one a line."""
        answer: Future[TextAnswer] = Future()
        match question:
            case _ if self._snapshot.state is not EngineState.READY:
                answer.set_exception(ModelUnavailable("no model is loaded"))
            case Tokenize(parts=parts):
                words = [w for p in parts for w in (p.split() if isinstance(p, str) else ["#" * p])]
                ids, pieces = tuple(map(len, words)), tuple(word.encode() for word in words)
                answer.set_result(TextAnswer(token_ids=ids, pieces=pieces))
            case Detokenize(ids=ids):
                answer.set_result(TextAnswer(text=" ".join("#" * i for i in ids)))
            case Render(chat=chat):
                lines = (f"{each.role}: {each.content}" for each in chat.messages)
                answer.set_result(TextAnswer(text="\n".join(lines)))
            case ShowTemplate():
                special = (("bos_token", "<s>"), ("eos_token", "</s>"))
                answer.set_result(TextAnswer(text="{{ messages }}", special_tokens=special))
        return answer

    def shutdown(self) -> None:
        for request_id in tuple(self.alive):
            self.fail(request_id, ModelUnavailable("the engine has shut down"))

    # what a test plays

    def start(self, request_id: str, *, prompt_tokens: int = 5, cached_tokens: int = 0) -> None:
        self.emit(
            Started(
                request_id=request_id,
                prompt_tokens=prompt_tokens,
                cached_tokens=cached_tokens,
                queued_s=0.0,
            )
        )

    def say(self, request_id: str, text: str) -> None:
        self.alive[request_id] += 1
        self.emit(TokenDelta(request_id=request_id, text=text, token_ids=(self.alive[request_id],)))

    def call(
        self,
        request_id: str,
        name: str,
        arguments: str = "{}",
        *,
        call_id: str = "c1",
        index: int = 0,
    ) -> None:
        """The model calls a tool; `finish` with TOOL_CALLS afterwards."""
        self.write(request_id, call=ToolCallDelta(index=index, call_id=call_id, name=name))
        self.write(request_id, call=ToolCallDelta(index=index, arguments=arguments))

    def write(
        self,
        request_id: str,
        *,
        text: str = "",
        reasoning: str = "",
        call: ToolCallDelta | None = None,
    ) -> None:
        """A token of a reply in parts."""
        self.alive[request_id] += 1
        self.emit(
            TokenDelta(
                request_id=request_id,
                text=text,
                token_ids=(self.alive[request_id],),
                reasoning=reasoning,
                tool_calls=() if call is None else (call,),
            )
        )

    def embed(self, request_id: str) -> None:
        """A vector of three numbers, which are exact."""
        self.emit(Embedded(request_id=request_id, values=(0.5, -0.5, 0.70703125)))
        self.finish(request_id)

    def park(
        self,
        request_id: str,
        *,
        held_tokens: int = 9,
        place: int = 1,
        cause: ParkCause = ParkCause.PAGES_SHORT,
    ) -> None:
        reason = ParkReason(cause=cause)
        self.emit(
            Parked(request_id=request_id, held_tokens=held_tokens, place=place, reason=reason)
        )

    def restore(
        self, request_id: str, *, parked_s: float = 1.0, recomputed_tokens: int = 0
    ) -> None:
        self.emit(
            Restored(request_id=request_id, parked_s=parked_s, recomputed_tokens=recomputed_tokens)
        )

    def publish(
        self,
        *runs: Run,
        pool: PoolUsage | None = None,
        parks: ParkUsage | None = None,
        holdings: tuple[Holding, ...] = (),
    ) -> None:
        """Let the snapshot list these requests, and no others."""
        old = self._snapshot
        self._snapshot = replace(
            old,
            runs=runs,
            pool=pool or old.pool,
            parks=parks or old.parks,
            holdings=holdings or old.holdings,
        )

    def publish_state(self, state: EngineState) -> None:
        """Let the snapshot have a model, and room for parked requests, or nothing."""
        parks = ParkUsage(budget_bytes=1 << 33)
        is_ready = state is EngineState.READY
        self._snapshot = (
            replace(self.ready_snapshot(TINY_MODEL), parks=parks)
            if is_ready
            else EngineSnapshot(state=state)
        )

    def publish_window(self, window_tokens: int) -> None:
        """Let requests hold so many tokens, as far as the snapshot says."""
        self._snapshot = replace(self._snapshot, window_tokens=window_tokens)

    def finish(
        self, request_id: str, reason: FinishReason = FinishReason.STOP, *, stop_text: str = ""
    ) -> None:
        tokens = self.alive.pop(request_id)
        usage = Usage(
            prompt_tokens=5,
            cached_tokens=0,
            completion_tokens=tokens,
            queued_s=0.0,
            prefill_s=0.01,
            decode_s=0.1,
        )
        self.emit(Finished(request_id=request_id, reason=reason, usage=usage, stop_text=stop_text))

    def fail(self, request_id: str, error: EngineError) -> None:
        tokens = self.alive.pop(request_id)
        self.emit(Failed(request_id=request_id, error=error, partial=tokens > 0))

    def emit(self, *events: EngineEvent) -> None:
        for listener in tuple(self._listeners):
            listener(events)
