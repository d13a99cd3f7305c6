"""NoticeList: newest first, one for each code."""

from __future__ import annotations

from studio.models.notices import Notice, NoticeLevel, NoticeList


def a_notice(code: str, text: str = "text") -> Notice:
    return Notice(code=code, level=NoticeLevel.INFO, text=text)


def test_the_newest_is_first_and_replaces_the_older_of_its_code() -> None:
    notices = NoticeList()
    for notice in (a_notice("a"), a_notice("b"), a_notice("a", "again")):
        notices.add(notice)
    assert [(notice.code, notice.text) for notice in notices.notices] == [
        ("a", "again"),
        ("b", "text"),
    ]


def test_dismissing_tells_only_when_something_went() -> None:
    notices, told = NoticeList(), []
    notices.add(a_notice("a"))
    notices.changed.connect(lambda: told.append(len(notices.notices)))
    notices.dismiss("a")
    notices.dismiss("a")
    assert told == [0]
