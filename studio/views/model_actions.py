"""What can be done with models from anywhere in the window: get, load, unload, pick a file. GUI thread.

One object for the start screen, the model menu and the notices; the model service does the work and reports errors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from studio.models.downloads import Offer
from studio.models.model_library import FoundModel
from studio.services.download_service import DownloadService
from studio.services.model_service import ModelService
from studio.views.dialogs.file_dialog import file_dialog
from studio.views.tasks import Tasks
from studio.views.words import tr


class ModelLoads(Protocol):
    """Loads and unloads; may ask first what is to become of replies that run."""

    async def load(self, name: str) -> object:
        """A path or a name of the library."""

    async def unload(self) -> object:
        """Free the model, also while it is loading."""


class ModelActions(QObject):
    """Returns at once; what comes of it shows in `ModelService`."""

    download_wanted = Signal()
    """A download has been put into the queue: somebody may want to see it."""
    library_wanted = Signal()

    def __init__(
        self,
        models: ModelService,
        downloads: DownloadService,
        tasks: Tasks,
        window: QWidget,
        *,
        loads: ModelLoads,
    ) -> None:
        super().__init__(window)
        self._loads = loads
        self._models = models
        self._downloads = downloads
        self._tasks = tasks
        self._window = window

    def load(self, name: str) -> None:
        """Load a model of the library."""
        self._tasks.start(self._loads.load(name))

    def unload(self) -> None:
        """Free the model; the chats stay."""
        self._tasks.start(self._loads.unload())

    def get(self, name: str) -> None:
        """Fetch a model of the catalogue and load it."""
        self._tasks.start(self._get(name))

    def get_starter(self) -> None:
        """Fetch and load the catalogue's first model."""
        for entry in self._models.catalog[:1]:
            self.get(entry.name)

    def cancel(self) -> None:
        """End the fetch that runs, or else the load."""
        if self._models.fetching is not None:
            self._models.cancel_fetch()
        else:
            self.unload()

    def look_around(self) -> None:
        """Look for models that other programs keep on this computer."""
        self._tasks.start(self._models.look_around())

    def download(self, offer: Offer) -> None:
        """Put a model into the queue of downloads."""
        self._tasks.start(self._download(offer))

    def use_found(self, found: FoundModel) -> None:
        """Link a model of another program, and load it."""
        self._tasks.start(self._use_found(found))

    def add_file(self) -> None:
        """Ask for a model file and remember it."""
        dialog = self._file_dialog(tr("Add a model file"))
        dialog.fileSelected.connect(
            lambda chosen: self._tasks.start(self._models.add(Path(chosen)))
        )
        dialog.open()

    def add_folder(self) -> None:
        """Ask for a folder and remember every model in it."""
        dialog = file_dialog(self._window, tr("Add a folder of models"))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.fileSelected.connect(
            lambda chosen: self._tasks.start(self._models.add_folder(Path(chosen)))
        )
        dialog.open()

    def choose_file(self) -> None:
        """Ask for a model file, remember it and load it."""
        self._ask(self._file_dialog(tr("Use a model file")))

    def choose_folder(self) -> None:
        """Ask for a folder in Hugging Face's layout, remember it and load it."""
        dialog = file_dialog(self._window, tr("Use a model folder"))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        self._ask(dialog)

    def _file_dialog(self, title: str) -> QFileDialog:
        dialog = file_dialog(self._window, title)
        dialog.setNameFilters([tr("Model files (*.gguf)"), tr("All files (*)")])
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        return dialog

    def use(self, path: Path) -> None:
        """Remember a model file or folder and load it."""
        self._tasks.start(self._use(path))

    def _ask(self, dialog: QFileDialog) -> None:
        dialog.fileSelected.connect(lambda chosen: self._tasks.start(self._use(Path(chosen))))
        dialog.open()

    async def _download(self, offer: Offer) -> None:
        await self._downloads.add(offer)
        self.download_wanted.emit()

    async def _use_found(self, found: FoundModel) -> None:
        with self._models.expecting():
            entry = await self._models.add_found(found)
            if entry is not None:
                await self._loads.load(entry.name)

    async def _get(self, name: str) -> None:
        with self._models.expecting():
            entry = await self._models.fetch(name)
            if entry is not None:
                await self._loads.load(entry.name)

    async def _use(self, path: Path) -> None:
        with self._models.expecting():
            entry = await self._models.add(path)
            if entry is not None:
                await self._loads.load(entry.name)
