"""The one part of the engine's door that does its work on the thread that knocks: counting a prompt's tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.api import Prompt
from engine.runtime.intake import tokenize

if TYPE_CHECKING:
    from engine.runtime.loaded_model import LoadedModel


class TokenCounter:
    """For the engine to be one; `_model` is the engine's own."""

    _model: LoadedModel | None

    def count_tokens(self, prompt: Prompt) -> int | None:
        """See `EnginePort`. A model's tokenizer and template never change, and do for many threads at once."""
        model = self._model
        return len(tokenize(prompt, model.tokenizer, model.template)) if model is not None else None
