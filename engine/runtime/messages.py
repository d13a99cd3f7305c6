"""What the engine thread finds in its inbox. Immutable; made on any thread. Imports no tensor library."""

from __future__ import annotations

from dataclasses import dataclass

from engine.api import LoadModel, Request, UnloadModel
from engine.runs import SteeringCommand
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
class Shutdown:
    """The engine is to end."""


Message = (
    Submit | Abort | Shutdown | Prepared | CopyDone | LoadModel | UnloadModel | SteeringCommand
)
