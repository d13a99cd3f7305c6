"""Between a wish to load or unload a model and its being done: where replies run, the user is asked first. GUI thread.

One question at a time; a new wish replaces it. What is chosen is the ReloadService's to do.
"""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from engine.api import EngineState
from studio.services.reload_service import ReloadChoice, Target
from studio.views.dialogs.reload_dialog import ReloadDialog
from studio.views.ports import WindowServices
from studio.views.tasks import Tasks


class ReloadFlow(QObject):
    """`dialog` is the open question, or None."""

    def __init__(self, services: WindowServices, tasks: Tasks, window: QWidget) -> None:
        super().__init__(window)
        self.dialog: ReloadDialog | None = None
        self._services = services
        self._tasks = tasks
        self._window = window

    async def load(self, name: str) -> None:
        """Load a model of the library, or ask what is to become of those who run."""
        await self._ask_or_do(Target(name=name))

    async def unload(self) -> None:
        """Free the model; a load that is under way ends without a question."""
        await self._ask_or_do(Target(name=None))

    def load_again(self) -> None:
        """Load the model that is there with what the settings say now."""
        target = self._services.reloads.again()
        if target is not None:
            self._tasks.start(self._ask_or_do(target))

    def close(self) -> None:
        """Close the question if one is open."""
        if self.dialog is not None:
            self.dialog.close()

    async def _ask_or_do(self, target: Target) -> None:
        self.close()
        reloads, models = self._services.reloads, self._services.models
        if models.state is not EngineState.READY or not reloads.affected():
            await reloads.load(target, ReloadChoice.PARK)
            return
        self.dialog = dialog = ReloadDialog(reloads, target, self._window)
        dialog.has_folder = bool(self._services.settings.settings.park.folder)
        dialog.chosen.connect(lambda choice: self._do(target, choice))
        dialog.finished.connect(self._on_finished)
        dialog.refresh()
        dialog.show()

    def _do(self, target: Target, choice: ReloadChoice) -> None:
        self._tasks.start(self._services.reloads.load(target, choice))

    def _on_finished(self) -> None:
        self.dialog = None
