"""Which model was loaded last: the one that the next start loads. GUI thread, no Qt.

Kept as the setting `engine.model`: by its name where the library would know that without the file, else by its path, so
that it can be said what is missing once the file is gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from engine.api import ModelInfo
from studio.models.errors import StudioError
from studio.models.model_library import ModelEntry, ModelSource
from studio.services.notice_service import NoticeService
from studio.services.settings_service import SettingsService

_KEY = "engine.model"


class LastModel:
    """Where it cannot be written, a notice says so."""

    def __init__(self, settings: SettingsService, notices: NoticeService) -> None:
        self._settings = settings
        self._notices = notices

    @property
    def path(self) -> Path | None:
        """Where it lies, if it is kept by its path."""
        path = Path(self._settings.settings.engine.model)
        return path if path.is_absolute() else None

    def remember(self, model: ModelInfo, library: Iterable[ModelEntry]) -> None:
        """It is loaded now."""
        sources = (entry.source for entry in library if entry.path == model.path)
        is_known = next(sources, ModelSource.FOUND) is not ModelSource.FOUND
        self._keep(model.name if is_known else str(model.path))

    def rename(self, name: str, new_name: str) -> None:
        """A model of the library is called otherwise from now on."""
        if self._settings.settings.engine.model.casefold() == name.casefold():
            self._keep(new_name)

    def _keep(self, model: str) -> None:
        try:
            self._settings.change(_KEY, model)
        except StudioError as error:
            self._notices.report(error)
