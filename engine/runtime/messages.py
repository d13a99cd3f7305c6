"""What the engine thread finds in its inbox. Immutable; made on any thread. Imports no tensor library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.api import LoadModel, Request, UnloadModel
from engine.errors import EngineError
from engine.runs import ForgetSaved, SteeringCommand, Suspend
from engine.runtime.disk.saved_state import Save
from engine.runtime.disk.state_file import Recalled
from engine.runtime.intake import Prepared


@dataclass(frozen=True, slots=True)
class Submit:
    """A new request."""

    request: Request


@dataclass(frozen=True, slots=True)
class Abort:
    """A request is not wanted any more."""

    request_id: str


@dataclass(frozen=True, slots=True)
class CopyDone:
    """A copy beside the steps was made, or could not be. `copier` tells whose it was: models come and go."""

    copier: object
    copy_id: int
    is_made: bool


@dataclass(frozen=True, slots=True)
class StateWritten:
    """A parked state lies in `half`, or could not be written (None). `save` tells which: parks come and go."""

    save: Save
    half: Path | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class StateRead:
    """The state that a request goes on with, or why it cannot. `reader` tells of which model's folder."""

    reader: object
    request_id: str
    outcome: Recalled | EngineError


@dataclass(frozen=True, slots=True)
class Shutdown:
    """The engine is to end."""


Message = (
    Submit
    | Abort
    | Shutdown
    | Prepared
    | CopyDone
    | StateWritten
    | StateRead
    | LoadModel
    | UnloadModel
    | Suspend
    | ForgetSaved
    | SteeringCommand
)
