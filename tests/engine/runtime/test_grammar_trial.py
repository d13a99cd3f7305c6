"""A grammar is compiled in a process that can be ended: what takes too long is refused, and holds up nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from llguidance import LLMatcher

from engine.runtime.grammar_trial import GrammarTrials, TooCostly
from engine.runtime.grammar_vocabulary import GrammarVocabulary
from fakes.tiny_text import byte_level

_PRIMES = [p for p in range(999_500, 999_983) if all(p % n for n in range(2, 1000))]
ENDLESS = LLMatcher.grammar_from_json_schema(
    json.dumps(
        {
            "type": "object",
            "properties": {f"p{p}": {"type": "integer", "multipleOf": p} for p in _PRIMES},
            "required": [f"p{p}" for p in _PRIMES],
        }
    )
)
"""Takes minutes, though it is short."""
FINE = LLMatcher.grammar_from_regex("[ab]{3}")
WRONG = "start: nobody"


@pytest.fixture
def vocabulary() -> GrammarVocabulary:
    return GrammarVocabulary(byte_level())


def trials_of(vocabulary: GrammarVocabulary, patience_s: float) -> Iterator[GrammarTrials]:
    trials = GrammarTrials(vocabulary.spelled, patience_s=patience_s)
    yield trials
    trials.close()


@pytest.fixture
def patient(vocabulary: GrammarVocabulary) -> Iterator[GrammarTrials]:
    yield from trials_of(vocabulary, 600)


@pytest.fixture
def hasty(vocabulary: GrammarVocabulary) -> Iterator[GrammarTrials]:
    yield from trials_of(vocabulary, 0.5)


def test_what_can_be_done_passes_and_so_does_what_is_wrong(
    patient: GrammarTrials, vocabulary: GrammarVocabulary
) -> None:
    for source in (FINE, WRONG, FINE):
        patient.check(source, vocabulary.special())
    assert len(patient._children) == 1, "one process for all"


def test_what_takes_too_long_is_refused(
    hasty: GrammarTrials, vocabulary: GrammarVocabulary
) -> None:
    for _ in range(2):
        with pytest.raises(TooCostly, match=r"longer than 0.5 s"):
            hasty.check(ENDLESS, vocabulary.special())
    assert not hasty._children, "and goes on nowhere"


def test_a_process_that_has_gone_to_rest_is_followed_by_another(
    patient: GrammarTrials, vocabulary: GrammarVocabulary
) -> None:
    patient.check(FINE, vocabulary.special())
    (child,) = patient._children
    child.end()
    patient.check(FINE, vocabulary.special())
    assert patient._children
    assert child not in patient._children


def test_a_process_that_breaks_down_refuses_its_grammar(
    patient: GrammarTrials, vocabulary: GrammarVocabulary
) -> None:
    heard = asked_aside(patient, vocabulary)
    (child,) = wait_for_child(patient)
    child.end()
    assert "too much memory" in heard.result()


def test_the_end_of_the_model_ends_what_is_tried(
    patient: GrammarTrials, vocabulary: GrammarVocabulary
) -> None:
    heard = asked_aside(patient, vocabulary)
    wait_for_child(patient)
    patient.close()
    assert heard.result()
    with pytest.raises(TooCostly):
        patient.check(FINE, vocabulary.special())


class asked_aside:
    """An endless grammar being tried on another thread."""

    def __init__(self, trials: GrammarTrials, vocabulary: GrammarVocabulary) -> None:
        self._words = ""
        self._trials, self._special = trials, vocabulary.special()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def result(self) -> str:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self._words

    def _run(self) -> None:
        try:
            self._trials.check(ENDLESS, self._special)
        except TooCostly as error:
            self._words = str(error)


def wait_for_child(trials: GrammarTrials) -> set[object]:
    started = threading.Event()
    while not trials._children:  # nothing tells of a new one
        started.wait(0.01)
    return set(trials._children)
