"""The window's second language: a catalogue (resources/i18n) that Qt asks for every sentence. GUI thread.

A catalogue is a flat JSON object from the English sentence to the other one. Sentences that come with their figures
already in them (reasons of waiting, errors) stand there with numbered places, `{0}`; what is in a place is taken over,
itself translated where the catalogue knows it. Must not import services.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.resources import files

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QObject, QTranslator

from studio.models.window_settings import Language

CONTEXT = "layby"
_FOLDER = files("resources") / "i18n"
_PLACE = re.compile(r"\{(\d+)\}")
_FIGURE = re.compile(r"(\d{1,3}((?:,\d{3})*))(\.\d+)?( [kMG]i?B)?")
_QUOTED = "“{title}”"
_MOST_REMEMBERED = 512
_SHORTER_THAN_QTS = {("QKeySequenceEdit", "Press shortcut")}
"""Qt's own words that do not fit where we show them."""


def read_catalogue(language: Language) -> dict[str, str]:
    """The sentences of a language; none for English, which is the sources' own."""
    if language in (Language.ENGLISH, Language.SYSTEM):
        return {}
    text = (_FOLDER / f"{language.value}.json").read_text(encoding="utf-8")
    table: dict[str, str] = json.loads(text)
    return table


def spoken_language(choice: Language) -> Language:
    """The language that is meant: the desktop's where that is asked for and there is a catalogue, or English."""
    if choice is not Language.SYSTEM:
        return choice
    is_german = QLocale.system().language() is QLocale.Language.German
    return Language.GERMAN if is_german else Language.ENGLISH


def locale_of(language: Language) -> QLocale:
    """How figures and dates are written: as the desktop does where it speaks that language."""
    spoken = {Language.GERMAN: QLocale.Language.German}.get(language, QLocale.Language.English)
    system = QLocale.system()
    if system.language() is spoken:
        return system
    country = {Language.GERMAN: QLocale.Country.Germany}.get(
        language, QLocale.Country.UnitedKingdom
    )
    return QLocale(spoken, country)


def speak(app: QCoreApplication, choice: Language) -> None:
    """Have every widget that is made from now on speak the language, Qt's own included."""
    language = spoken_language(choice)
    QLocale.setDefault(locale_of(language))
    if language is Language.ENGLISH:
        return
    own = QTranslator(app)
    folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    if own.load(f"qtbase_{language.value}", folder):
        app.installTranslator(own)
    app.installTranslator(Catalogue(read_catalogue(language), app))


class Catalogue(QTranslator):
    """Answers Qt's questions for our own sentences; those of others go on to Qt's own catalogues."""

    def __init__(self, table: Mapping[str, str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._table = dict(table)
        numbered = [source for source in table if _PLACE.search(source)]
        numbered.sort(key=lambda source: -len(_PLACE.sub("", source)))  # the most particular first
        self._patterns = tuple((_pattern(source), table[source]) for source in numbered)
        self._found: dict[str, str | None] = {}

    def isEmpty(self) -> bool:
        return not self._table

    def translate(
        self,
        context: str,
        sourceText: str,
        disambiguation: str | None = None,
        n: int = -1,
    ) -> str | None:
        is_ours = context == CONTEXT or (context, sourceText) in _SHORTER_THAN_QTS
        return self.find(sourceText) if is_ours else None

    def find(self, sentence: str) -> str | None:
        """The sentence in the catalogue's language, or None where it is not there."""
        if (exact := self._table.get(sentence)) is not None:
            return exact
        if sentence not in self._found:
            if len(self._found) >= _MOST_REMEMBERED:
                self._found.clear()
            self._found[sentence] = self._match(sentence)
        return self._found[sentence]

    def _match(self, sentence: str) -> str | None:
        for pattern, target in self._patterns:
            if (found := pattern.fullmatch(sentence)) is not None:
                return target.format(*(self._taken_over(part) for part in found.groups()))
        return None

    def _taken_over(self, part: str) -> str:
        """What is in a place: a name in quotation marks has those of the language."""
        is_quoted = len(part) > 1 and part[0] == part[-1] == "'" and "'" not in part[1:-1]
        if is_quoted and (marks := self._table.get(_QUOTED)) is not None:
            return marks.format(title=part[1:-1])
        return _figure(part) or self.find(part) or part


def _figure(part: str) -> str:
    """A figure of the sources as the language writes it, with its unit; empty for what is none."""
    found = _FIGURE.fullmatch(part)
    if found is None or not (found[2] or found[4]):
        return ""
    here = QLocale()
    whole = found[1].replace(",", here.groupSeparator())
    return whole + (found[3] or "").replace(".", here.decimalPoint()) + (found[4] or "")


def _pattern(source: str) -> re.Pattern[str]:
    """A sentence with numbered places, in their order, as an expression whose groups are the places."""
    literals = _PLACE.split(source)[::2]
    return re.compile("(.+?)".join(re.escape(one) for one in literals), re.DOTALL)
