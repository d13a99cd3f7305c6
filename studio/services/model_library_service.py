"""The model library on disk: a folder of model files, the paths added from elsewhere, and the catalogue.

Blocking functions, used by the command line as they are and by `ModelService` through a worker thread. No Qt, no torch.
"""

from __future__ import annotations

from pathlib import Path

from studio.models.model_library import CatalogEntry, ModelEntry


class ModelLibraryService:
    """What is in the library follows from the disk at each call; nothing is cached."""

    def __init__(self, folder: Path) -> None:
        raise NotImplementedError

    @property
    def catalog(self) -> tuple[CatalogEntry, ...]:
        raise NotImplementedError

    def entries(self) -> tuple[ModelEntry, ...]:
        raise NotImplementedError

    def resolve(self, model: str) -> Path:
        """The path of a library name (also in other case) or of a path itself. Raises ModelNotFound with the names there are."""
        raise NotImplementedError
