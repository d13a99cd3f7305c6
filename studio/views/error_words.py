"""What an error says, in the user's language. Pure functions on the GUI thread. Must not import services or widgets.

The catalogues have most errors sentence by sentence. What is wrong deep inside a model's file is told in its maker's
English in the log and over the API; in another language the window says what it comes to.
"""

from __future__ import annotations

from PySide6.QtCore import QLocale

from engine.errors import (
    CorruptModel,
    DeviceFailure,
    EngineError,
    InvalidRequest,
    ModelError,
    ModelNotFound,
    NotEnoughMemory,
    RequestError,
    UnsupportedModel,
)
from studio.views.words import tr


def error_words(error: Exception) -> str:
    """What it says; what to do where only its maker's English is there."""
    code = error.code if isinstance(error, EngineError) else ""
    return detail_words(str(error), code)


def detail_words(text: str, code: str) -> str:
    """The same for an error of which there is its text and its code; nothing of nothing. Each line is its own."""
    told, language = "\n".join(map(tr, text.split("\n"))), QLocale.Language
    speaks_english = QLocale().language() in (language.English, language.C)  # C: nothing was chosen
    if not text or told != text or speaks_english or code not in _INSTEAD:
        return told
    return tr(_INSTEAD[code])


def error_sentence(error: Exception) -> str:
    """The same, as a sentence of its own."""
    return as_sentence(error_words(error))


def as_sentence(text: str) -> str:
    """With a capital, unless it begins with the name of a file, field or place, and a full stop; nothing of nothing."""
    if not text:
        return ""
    first_word = text.split(maxsplit=1)[0]
    is_name = any(mark in first_word for mark in _OF_NAMES)
    head = text[0] if is_name else text[0].upper()
    return with_stop(f"{head}{text[1:]}")


def with_stop(text: str) -> str:
    """A sentence that ends as one, also where others' words stand at its end that do already."""
    bare = text.rstrip()
    if bare.endswith(".") and not bare.endswith("..."):
        bare = bare.rstrip(".")
    return bare if bare.endswith(_ENDS) else f"{bare}."


_OF_NAMES = (".", ":", "/", "\\", "_")
_ENDS = ("...", "…", "!", "?", ".”", "!”", "?”")

_INSTEAD = {
    EngineError.code: "the log has the particulars",
    RequestError.code: "the log has the particulars",
    InvalidRequest.code: "the log has the particulars",
    ModelError.code: "it cannot be loaded as it is; the log has the particulars",
    ModelNotFound.code: "there is nothing at that place; check the path",
    CorruptModel.code: "the file is damaged or incomplete; download it again",
    UnsupportedModel.code: "models of this kind are not supported by this version",
    NotEnoughMemory.code: "close other programs, or take a smaller model or a smaller pool",
    DeviceFailure.code: "load the model again; the log has the particulars",
}
