"""Loading a model, and what happens to messages that wait meanwhile. Engine thread; loads no tensor library itself."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from engine.api import EngineEvent, Finished, FinishReason, LoadModel, UnloadModel
from engine.errors import EngineError, ModelError
from engine.runtime.groups import Groups
from engine.runtime.live_request import LiveRequest
from engine.runtime.messages import Abort, Message, Shutdown, Submit

if TYPE_CHECKING:
    from engine.runtime.loaded_model import LoadedModel


class LoadCancelled(Exception):
    """Raised inside a load by its own progress callback."""


def load_model(
    command: LoadModel,
    on_progress: Callable[[float], object],
    put: Callable[[Message], object],
) -> LoadedModel | EngineError:
    """The model, or why there is none. Raises LoadCancelled, which comes from `on_progress`."""
    # Threads that spin while they wait halve the speed beside one busy program; read when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Here and not above: it takes a while to import (torch, where that computes, a second), when the window is up.
    from engine.runtime.loaded_model import LoadedModel

    try:
        return LoadedModel.load(command, on_progress, put)
    except LoadCancelled:
        raise
    except EngineError as error:
        return error
    except Exception as error:  # noqa: BLE001 - whatever a model's files do, the engine lives on
        return ModelError(f"{command.path}: {type(error).__name__}: {error}")


def refusal_of(command: LoadModel, loaded: LoadedModel) -> EngineError | None:
    """Why a load is not even begun: the model that is there would go, and the other not come."""
    try:
        loaded.check_successor(command)
    except EngineError as error:
        return error
    except Exception as error:  # noqa: BLE001 - as above
        return ModelError(f"{command.path}: {type(error).__name__}: {error}")
    return None


def check_still_wanted(pending: Iterable[Message]) -> None:
    """Raises LoadCancelled if a message that waits would end the load; one for an idle engine waits for its end."""
    for one in pending:
        is_wanted = isinstance(one, UnloadModel | LoadModel) and not one.only_if_idle
        if is_wanted or isinstance(one, Shutdown):
            raise LoadCancelled


def aborted_before_start(
    pending: deque[Message], groups: Groups, now_s: float
) -> list[EngineEvent]:
    """Take requests that wait and have been aborted out of `pending`, and report their ends."""
    events: list[EngineEvent] = []
    for message in tuple(pending):
        if not isinstance(message, Abort):
            continue
        submit = _submit_of(message.request_id, pending)
        if submit is not None:
            pending.remove(submit)
            groups.miss(submit.request)
            events.append(
                Finished(
                    request_id=message.request_id,
                    reason=FinishReason.ABORTED,
                    usage=LiveRequest(submit.request, 0, now_s).usage(now_s),
                )
            )
    return events


def _submit_of(request_id: str, pending: deque[Message]) -> Submit | None:
    for message in pending:
        if isinstance(message, Submit) and message.request.request_id == request_id:
            return message
    return None
