"""From a saved state to a request that goes on with it. Engine thread; imports no tensor library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.api import Resumed
from engine.core.types import Sequence
from engine.errors import ContextLengthExceeded, EngineError, ResumeRefused, Suspended
from engine.runtime.disk.saved_state import SavedState
from engine.runtime.disk.state_file import Recalled
from engine.runtime.live_request import Generation, LiveRequest
from engine.text.text_stream import Told

if TYPE_CHECKING:
    from engine.runtime.loaded_model import LoadedModel


def put_aside() -> Suspended:
    """What a request is told that can be gone on with."""
    return Suspended("the reply is kept on disk; it goes on when its model is loaded again")


def no_folder() -> ResumeRefused:
    """What a request is told that would go on with a state where none are kept."""
    return ResumeRefused(
        "there is no saved state to go on with: this model was loaded without a folder for them (--preempt-disk); "
        "name it and load the model again"
    )


def come_back(live: LiveRequest, model: LoadedModel, outcome: Recalled | EngineError) -> Resumed:
    """Make the request ready to enter the line where the state of before left off.

    Raises EngineError if it cannot; a state that is of no use to any model is forgotten.
    """
    try:
        generation, told = _recall(live, model, outcome)
    except ResumeRefused as error:
        if error.is_lost and model.disk is not None:
            model.disk.forget(live.request.request_id)
        raise
    live.generation, live.has_sent_text = generation, any(told)
    return Resumed(
        request_id=live.request.request_id,
        text=told.text,
        token_ids=tuple(generation.reply_ids),
        reasoning=told.reasoning,
        tool_calls=told.calls,
    )


def _recall(
    live: LiveRequest, model: LoadedModel, outcome: Recalled | EngineError
) -> tuple[Generation, Told]:
    if isinstance(outcome, EngineError):
        raise outcome
    try:
        return model.recall(live, outcome)
    except EngineError:
        raise
    except Exception as error:  # whatever a file says, it is one request's trouble
        words = f"the saved state cannot be used: {type(error).__name__}: {error}"
        raise ResumeRefused(words, is_lost=True) from error


def check_recalled(state: SavedState, *, window_tokens: int, vocab_size: int) -> None:
    """Raises ContextLengthExceeded when it no longer fits, ResumeRefused on a token that the model does not have."""
    if len(state.token_ids) >= window_tokens:
        raise ContextLengthExceeded(
            f"the reply was parked with {len(state.token_ids):,} tokens and needs at least one more, but a request can "
            f"hold {window_tokens:,}; load the model with a larger context to go on",
            needed_tokens=len(state.token_ids) + 1,
            limit_tokens=window_tokens,
        )
    wrong = next((i for i in (*state.token_ids, *state.reply_ids) if not 0 <= i < vocab_size), None)
    if wrong is not None:
        raise ResumeRefused(
            f"the saved state has the token {wrong}, outside the vocabulary of 0 to {vocab_size - 1}; send the prompt "
            "again",
            is_lost=True,
        )


def adopt_state(seq: Sequence, state: SavedState) -> None:
    """Bring a new sequence to where the parked one was. A state without pages counts as one more recompute."""
    seq.num_discarded = state.num_discarded
    seq.num_parks = state.num_parks
    seq.num_recomputes = state.num_recomputes + (state.num_pages == 0)
    seq.parked_s = state.parked_s
