"""The parts of the engine's door that are about text alone and need no turn of the engine's thread."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

from engine.api import Prompt, TextAnswer, TextQuestion
from engine.errors import ModelUnavailable
from engine.runtime.intake import Intake, TextTask, tokenize

if TYPE_CHECKING:
    from engine.runtime.loaded_model import LoadedModel


class TokenCounter:
    """For the engine to be one; `_model` and `_intake` are the engine's own.

    A model's tokenizer and template never change, and work for many threads at once.
    """

    _model: LoadedModel | None
    _intake: Intake

    def count_tokens(self, prompt: Prompt) -> int | None:
        """See `EnginePort`. Works on the thread that knocks."""
        model = self._model
        return len(tokenize(prompt, model.tokenizer, model.template)) if model is not None else None

    def read_text(self, question: TextQuestion) -> Future[TextAnswer]:
        """See `EnginePort`. Works on the intake worker."""
        answer: Future[TextAnswer] = Future()
        model = self._model
        if model is None:
            answer.set_exception(ModelUnavailable("no model is loaded; load one and ask again"))
        else:
            self._intake.ask(TextTask(question, model.tokenizer, model.template, answer))
        return answer
