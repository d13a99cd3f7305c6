"""The second language: catalogues that fit the sources' sentences, figures by locale, and a choice that is followed."""

from __future__ import annotations

import errno
import string
from collections import Counter
from collections.abc import Iterator
from datetime import datetime

import pytest
from PySide6.QtCore import QCoreApplication, QLocale
from PySide6.QtWidgets import QApplication

from engine.errors import CorruptModel, ModelNotFound, UnsupportedModel
from engine.runs import ParkCause, ParkReason, WaitKind, WaitReason
from fakes.sentences import all_sentences, missing, passed_on, unread
from studio.models.errors import ExchangeError, StoreError, ToolServerError
from studio.models.model_library import ModelFacts
from studio.models.run_words import expected_wait_words, reason_words
from studio.models.window_settings import Language
from studio.services.tools.link_faults import link_fault, no_answer, told
from studio.views import words
from studio.views.error_words import detail_words, error_sentence, error_words
from studio.views.models.model_words import problem_words
from studio.views.translation import Catalogue, locale_of, read_catalogue, spoken_language

GERMAN = read_catalogue(Language.GERMAN)


@pytest.fixture
def german(qapp: QApplication) -> Iterator[Catalogue]:
    """The program speaks German."""
    before = QLocale()
    catalogue = Catalogue(GERMAN, qapp)
    QLocale.setDefault(QLocale(QLocale.Language.German, QLocale.Country.Germany))
    qapp.installTranslator(catalogue)
    yield catalogue
    qapp.removeTranslator(catalogue)
    QLocale.setDefault(before)


def places(sentence: str) -> Counter[str]:
    return Counter(name for _, name, _, _ in string.Formatter().parse(sentence) if name is not None)


def test_every_sentence_of_the_catalogue_is_still_in_the_sources() -> None:
    assert sorted(GERMAN.keys() - all_sentences()) == []


def test_every_sentence_of_the_sources_is_in_the_catalogue() -> None:
    """Add what is missing to resources/i18n/de.json; `python -m fakes.sentences` in tests/ lists it."""
    assert missing(GERMAN) == []


def test_nothing_is_translated_that_the_test_above_cannot_see() -> None:
    """Give `tr` a literal, or let `fakes.sentences` read the table that its words come from."""
    assert unread() == set()


def test_no_error_tells_what_a_library_or_the_system_has_said() -> None:
    """Say it in words of ours: `json_fault`, `system_fault`, `network_fault`. The log has the rest."""
    assert passed_on() == []


def test_a_damaged_file_is_told_in_german(german: Catalogue) -> None:
    told = "a.json is damaged or no JSON file (look at line 39, character 14)"
    assert error_words(ExchangeError(told)) == (
        "a.json ist beschädigt oder keine JSON-Datei (sieh in Zeile 39, Zeichen 14 nach)"
    )
    told = "/x/a.json cannot be written: the disk is full; choose another place"
    assert "die Platte ist voll" in error_words(ExchangeError(told))


def is_alike(source: str, target: str) -> bool:
    """Whether a translation has the same places for figures and names, and the same ends."""
    one_figure = {"1 token", "1 page", "1 other request"}
    ends = ("…", "\n", ":")
    return (
        bool(target.strip())
        and (places(target) == places(source) or source in one_figure)
        and [target.endswith(end) for end in ends] == [source.endswith(end) for end in ends]
        and (("&" in target) == ("&" in source) or source == "P&revious chat")
    )


def test_a_translation_has_the_same_places_and_the_same_ends() -> None:
    assert {source: said for source, said in GERMAN.items() if not is_alike(source, said)} == {}


@pytest.mark.parametrize(
    "target", ["", " ", "{menge} Token", "{count} Token…", "{count} Token:", "&{count} Token"]
)
def test_one_that_is_not_alike_is_seen(target: str) -> None:
    assert is_alike("{count} tokens", "{count} Token")
    assert not is_alike("{count} tokens", target)


def test_figures_and_plurals_in_german(german: Catalogue) -> None:
    assert (words.tokens(1), words.tokens(1420)) == ("1 Token", "1.420 Token")
    assert [words.ordinal(place) for place in (1, 2, 3, 4, 11, 21)] == [
        "1.", "2.", "3.", "4.", "11.", "21.",
    ]  # fmt: skip
    assert words.seconds(0.93) == "0,9 s"
    assert words.percent(0.42) == "42 %"
    assert words.memory(3 << 29) == "1,5 GB"
    now = datetime(2026, 11, 29, 12, 0).timestamp()
    moments = [datetime(2026, 11, 29, 9, 5), datetime(2026, 3, 1), datetime(2025, 12, 31)]
    said = [words.when(moment.timestamp(), now) for moment in moments]
    assert said == ["09:05", "1. März", "31.12.2025"]


def test_sentences_that_come_with_their_figures_are_translated_too(german: Catalogue) -> None:
    wait = WaitReason(kind=WaitKind.NO_ROOM, place=1, pages_needed=3, pages_spare=1)
    park = ParkReason(cause=ParkCause.PAGES_SHORT, for_ids=("a", "b"))
    assert words.tr(reason_words(wait)) == "Wartet auf Platz: es braucht 3 Seiten, frei sind 1"
    assert words.tr(reason_words(park)) == "Geparkt, um Platz zu machen für 2 andere Anfragen"
    assert words.tr(expected_wait_words((6, 10))) == "zurück in 6 bis 10 s"
    assert words.tr(expected_wait_words((20, 20), what="starts")) == "beginnt in etwa 20 s"


@pytest.mark.parametrize(
    ("english", "german_words"),
    [
        ("1.5 GB", "1,5 GB"),
        ("1,204.5 GB", "1.204,5 GB"),
        ("98 MB", "98 MB"),
        ("1,204", "1.204"),
        ("312", "312"),
        ("3.11", "3.11"),  # of a version
        ("10,20,30", "10,20,30"),
    ],
)
def test_figures_in_a_sentence_are_written_as_the_language_does(
    german: Catalogue, english: str, german_words: str
) -> None:
    told = f"the disk of /m has {english} free, a.gguf needs 2 GB more; make room, then go on from where it stopped"
    assert (german.find(told) or "").startswith(f"die Platte von /m hat {german_words} frei, ")


def test_what_no_catalogue_has_stays_english(german: Catalogue) -> None:
    assert words.tr("nobody said this") == "nobody said this"
    assert words.tr("") == ""
    assert german.translate("QMessageBox", "Cancel") is None


def test_braces_in_what_is_taken_over_do_no_harm(german: Catalogue) -> None:
    said = german.find("the chat history /tmp/{0}{x} is closed; start Layby again")
    assert said == "der Chatverlauf /tmp/{0}{x} ist geschlossen; starte Layby neu"


def test_a_name_that_is_taken_over_has_the_quotation_marks_of_the_language(
    german: Catalogue,
) -> None:
    said = german.find("the name ' a' is not allowed; take 1 to 64 characters on one line")
    assert said == "der Name „ a“ ist nicht erlaubt; nimm 1 bis 64 Zeichen in einer Zeile"
    said = german.find("seed is 'x', allowed is one of 'a', 'b'")
    assert said == "seed ist „x“, erlaubt ist eins von 'a', 'b'", "a list is no name"


def test_many_different_sentences_are_not_all_remembered(german: Catalogue) -> None:
    for number in range(2000):
        assert german.find(f"no such sentence {number}") is None
    assert len(german._found) <= 512


def test_the_desktops_language_is_followed_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = QLocale(QLocale.Language.German, QLocale.Country.Switzerland)
    monkeypatch.setattr(QLocale, "system", lambda: system)
    assert spoken_language(Language.SYSTEM) is Language.GERMAN
    assert spoken_language(Language.ENGLISH) is Language.ENGLISH
    assert locale_of(Language.GERMAN) == system
    assert locale_of(Language.ENGLISH).language() is QLocale.Language.English
    monkeypatch.setattr(QLocale, "system", lambda: QLocale(QLocale.Language.French))
    assert spoken_language(Language.SYSTEM) is Language.ENGLISH


def test_without_a_catalogue_everything_is_as_in_the_sources(qapp: QApplication) -> None:
    assert read_catalogue(Language.ENGLISH) == {}
    assert QCoreApplication.translate("layby", "New chat") == "New chat"


def test_no_error_of_the_engine_is_told_in_english_in_another_language(german: Catalogue) -> None:
    damaged = CorruptModel("model.gguf: tensor blk.0 is in another file too; download it again")
    assert error_words(damaged) == GERMAN["the file is damaged or incomplete; download it again"]
    missing = ModelNotFound("/a/b.gguf does not exist; check the path")
    assert error_words(missing) == "/a/b.gguf gibt es nicht; prüfe den Pfad"
    assert error_sentence(UnsupportedModel("mixture-of-experts")).startswith("Modelle dieser Art")
    unknown = StoreError("/data/history.sqlite")
    assert error_words(unknown) == "/data/history.sqlite", "what is no sentence stays"


def test_what_is_wrong_with_a_server_of_tools_is_said_in_the_windows_language(
    german: Catalogue,
) -> None:
    missing = link_fault(FileNotFoundError(errno.ENOENT, "No such file or directory", "npx"))
    words = "das Programm „npx“ wurde nicht gefunden; prüfe seinen Befehl und Ordner"
    assert error_words(ToolServerError(told("home", missing, ""))) == f"home: {words}"
    assert error_words(ToolServerError(told("home", no_answer(30.0), "a: b"))) == (
        "home: keine Antwort in 30 s; es meldete: a: b"
    )
    assert error_words(StoreError("home: whatever")) == "home: whatever", "what nobody knows stays"


def test_where_nothing_is_wrong_nothing_is_said_in_any_language(german: Catalogue) -> None:
    assert problem_words(ModelFacts(info=None, problem="")) == ""
    assert problem_words(ModelFacts(info=None, problem="tensor count is 0")) != ""


def test_an_error_is_told_as_it_is_in_english(qapp: QApplication) -> None:
    text = "model.gguf: tensor blk.0 is in another file too; download it again"
    assert error_words(CorruptModel(text)) == text


def test_each_line_of_particulars_is_translated(german: Catalogue) -> None:
    assert detail_words("a.txt is empty\nb.txt is empty", "") == "a.txt ist leer\nb.txt ist leer"
    assert german.find("2 files were not attached") == "2 Dateien wurden nicht angehängt"
