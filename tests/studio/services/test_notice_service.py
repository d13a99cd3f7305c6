"""Every error there is has a row in the one table of notices."""

from __future__ import annotations

import pytest

from engine.errors import EngineError, InvalidRequest, ModelNotFound
from studio.models.errors import StudioError
from studio.models.notices import NoticeAction, NoticeLevel
from studio.services.notice_service import NOTICE_TABLE, NoticeService


def all_below(kind: type[Exception]) -> list[type[Exception]]:
    return [kind, *(below for child in kind.__subclasses__() for below in all_below(child))]


KINDS = all_below(EngineError) + all_below(StudioError)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_has_a_row(kind: type[EngineError | StudioError]) -> None:
    assert kind.code in NOTICE_TABLE


def test_there_is_no_row_without_an_error() -> None:
    assert set(NOTICE_TABLE) == {kind.code for kind in KINDS}  # type: ignore[attr-defined]


def test_headlines_are_plain() -> None:
    for _, text, _ in NOTICE_TABLE.values():
        assert text[0].isupper()
        assert text[-1] not in ".!"


def test_an_error_is_in_the_log_with_its_code(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        NoticeService().report(ModelNotFound("there is no model 'x'"))
    assert caplog.messages == ["model_not_found: there is no model 'x'"]


def test_an_error_becomes_a_notice_with_its_own_text_as_the_detail() -> None:
    service = NoticeService()
    service.report(ModelNotFound("there is no model 'x'"))
    (notice,) = service.notices.notices
    assert (notice.code, notice.level) == ("model_not_found", NoticeLevel.WARNING)
    assert (notice.detail, notice.action) == ("there is no model 'x'", NoticeAction.OPEN_MODELS)


def test_a_resolved_cause_takes_its_notice_away() -> None:
    service = NoticeService()
    service.report(InvalidRequest("bad"))
    service.resolve("invalid_value")
    assert service.notices.notices == ()
