"""The way of requests into the line of one loaded model: prompts are read, groups gather, states of before come back.

Engine thread; made with the model, and of no use after it. Imports no tensor library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.api import EngineEvent, Failed, Finished, FinishReason, TokenIds
from engine.errors import EngineError, RequestError
from engine.runs import SteeringCommand
from engine.runtime.carrying import Carrier
from engine.runtime.disk.recalling import come_back, no_folder
from engine.runtime.disk.state_file import Recalled
from engine.runtime.grammar_matcher import GrammarMatcher
from engine.runtime.groups import Groups
from engine.runtime.intake import Intake, Prepared
from engine.runtime.live_request import LiveRequest
from engine.runtime.messages import StateRead

if TYPE_CHECKING:
    from engine.runtime.loaded_model import LoadedModel
    from engine.runtime.stepper import Stepper


@dataclass(slots=True)
class LiveRequests:
    """Every request that has not had its terminal event, by id, in the order they came."""

    by_id: dict[str, LiveRequest]
    groups: Groups
    clock: Callable[[], float]

    def finish(self, live: LiveRequest, reason: FinishReason) -> Finished:
        request_id = live.request.request_id
        del self.by_id[request_id]
        return Finished(request_id=request_id, reason=reason, usage=live.usage(self.clock()))

    def fail(self, live: LiveRequest, error: EngineError) -> list[EngineEvent]:
        request_id = live.request.request_id
        del self.by_id[request_id]
        return [Failed(request_id=request_id, error=error, partial=live.has_sent_text)]

    def refuse(self, live: LiveRequest, error: EngineError) -> list[EngineEvent]:
        """End a request whose prompt cannot be read, and those that were asked together with it."""
        refused = self.groups.refuse(live, error)
        return [event for member in refused for event in self.fail(member, error)]


@dataclass(slots=True)
class Reception:
    """Serves one model."""

    live: LiveRequests
    intake: Intake
    model: LoadedModel
    stepper: Stepper
    recalled: dict[str, Recalled] = field(default_factory=dict)
    """States that have been read, whose grammars are being compiled."""

    def read_prompt(self, live: LiveRequest) -> list[EngineEvent]:
        """Have the prompt read, or the state on disk that stands for it."""
        if not live.request.resumes:
            self.intake.prepare(self.model.prepare_task(live))
        elif self.model.disk is not None:
            self.model.disk.recall(live.request.request_id)
        else:
            return self.live.fail(live, no_folder())
        return []

    def admit(self, prepared: Prepared) -> list[EngineEvent]:
        """A prompt has been read, or the grammar of a state compiled."""
        live = self.live.by_id.get(prepared.request_id)
        state = self.recalled.pop(prepared.request_id, None)
        if live is None or live.generation is not None:
            return []  # aborted, or its model was unloaded, while the prompt was being read
        if prepared.error is not None:
            return self.live.refuse(live, prepared.error)
        if live.request.resumes:  # without a state: asked of the model before this one
            return self._bring_back(live, state, prepared.matcher) if state is not None else []
        try:
            live.generation = self.model.generation(live, prepared)
        except EngineError as error:
            return self.live.refuse(live, error)
        except Exception as error:  # noqa: BLE001 - one request's trouble is its own
            return self.live.refuse(live, RequestError(f"{type(error).__name__}: {error}"))
        return self.enter(self.live.groups.ready(live))

    def admit_recalled(self, read: StateRead) -> list[EngineEvent]:
        """A state on disk has been read."""
        live, disk = self.live.by_id.get(read.request_id), self.model.disk
        if live is None or disk is None or not disk.is_mine(read):
            return []  # aborted, or its model was unloaded, while the state was being read
        state = read.outcome
        if isinstance(state, EngineError) or state.state.grammar is None:
            return self._bring_back(live, state, None)
        self.recalled[read.request_id] = state
        request = replace(
            live.request,
            prompt=TokenIds(ids=()),
            grammar=state.state.grammar,
            ignore_eos=state.state.ignore_eos,
        )
        self.intake.prepare(replace(self.model.prepare_task(live), request=request))
        return []

    def _bring_back(
        self, live: LiveRequest, state: Recalled | EngineError, matcher: GrammarMatcher | None
    ) -> list[EngineEvent]:
        try:
            resumed = come_back(live, self.model, state)
        except EngineError as error:
            return self.live.fail(live, error)
        assert live.generation is not None
        live.generation.matcher = matcher
        events = self.enter((live,))
        if self.model.disk is not None:
            self.model.disk.take_over(live)
        return [resumed, *events]

    def bring(self, carrier: Carrier) -> list[EngineEvent]:
        """Let those go on who were carried over the load of this model."""
        failed, to_read = carrier.bring(self.model, self.stepper, self.live.clock())
        self.stepper.wake()
        events = [event for live, error in failed for event in self.live.fail(live, error)]
        for live in self.live.by_id.values():
            if live.is_in_line:
                self._grant(live)
        return [*events, *(event for live in to_read for event in self.read_prompt(live))]

    def enter(self, ready: tuple[LiveRequest, ...]) -> list[EngineEvent]:
        """Put requests in line, and do with them what was asked for meanwhile; to an empty prompt there is no reply."""
        events: list[EngineEvent] = []
        for live in ready:
            assert live.generation is not None
            if not live.generation.seq.num_prompt:
                events.append(self.live.finish(live, FinishReason.STOP))
                continue
            if live.request.resumes:
                self.stepper.adopt(live)
            elif live.request.follows:
                self.stepper.follow(live)
            else:
                self.stepper.add(live)
            self._grant(live)
        return events

    def steer(self, command: SteeringCommand) -> None:
        """Carry out a command by hand."""
        self.model.steer(command, self.live.clock())

    def _grant(self, live: LiveRequest) -> None:
        for wish in live.wishes:
            self.steer(wish)
        live.wishes.clear()
