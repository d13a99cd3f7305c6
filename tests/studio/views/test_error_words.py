"""Errors as sentences: one capital where it is one's own, and one full stop."""

from __future__ import annotations

import pytest

from studio.models.notices import Notice, NoticeLevel
from studio.views.error_words import as_sentence
from studio.views.notices.notice_bar import notice_words

SENTENCES = [
    ("", ""),
    ("it failed", "It failed."),
    ("it failed.", "It failed."),
    ("it failed..", "It failed."),
    ("it failed. ", "It failed."),
    ("files: it said: no licence found.", "files: it said: no licence found."),
    ("files: it said: type to keep running v1 code...", "files: it said: type to keep running v1 code..."),
    ("wait…", "Wait…"),
    ("is it there?", "Is it there?"),
    ("http://127.0.0.1/a cannot be asked", "http://127.0.0.1/a cannot be asked."),
    ("example.org sent a web page", "example.org sent a web page."),
    ("model.gguf is damaged", "model.gguf is damaged."),
    ("/home/me is full", "/home/me is full."),
    ("top_k is too large", "top_k is too large."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), SENTENCES)
def test_an_error_becomes_one_sentence(text: str, sentence: str) -> None:
    assert as_sentence(text) == sentence


@pytest.mark.parametrize(("text", "sentence"), SENTENCES[1:])
def test_a_notice_ends_once_whatever_its_particulars_end_with(text: str, sentence: str) -> None:
    notice = Notice(code="x", level=NoticeLevel.INFO, text="It did not work", detail=text)
    assert notice_words(notice).casefold() == f"it did not work: {sentence}".casefold()
