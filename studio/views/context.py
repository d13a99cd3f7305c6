"""What most parts of the window need, passed down as one thing. GUI thread; built by the main window only."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtWidgets import QWidget

from studio.views.chat.formulas import Formulas
from studio.views.chat.kit import Kit
from studio.views.chat.slices import Slices
from studio.views.frame_ticker import FIGURES_MS, FRAME_MS, FrameTicker
from studio.views.model_actions import ModelActions, ModelLoads
from studio.views.ports import WindowServices
from studio.views.run_watch import RunWatch
from studio.views.tasks import Tasks
from studio.views.theme import Theme


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Shared by all views of one window."""

    services: WindowServices
    theme: Theme
    kit: Kit
    """What transcripts are drawn with."""
    tasks: Tasks
    model_actions: ModelActions
    watch: RunWatch
    """The engine's snapshot, four times a second."""
    frames: FrameTicker
    """At most 30 flushes a second, for text on screen; fewer where that takes long."""
    figures: FrameTicker
    """At most 4 flushes a second, for figures that nobody could read faster."""

    @staticmethod
    def of_window(
        window: QWidget,
        services: WindowServices,
        theme: Theme,
        tasks: Tasks,
        *,
        loads: ModelLoads,
    ) -> Context:
        """All of it made for this window."""
        actions = ModelActions(services.models, services.downloads, tasks, window, loads=loads)
        return Context(
            services=services,
            theme=theme,
            kit=Kit(theme, Formulas(window), Slices(window)),
            tasks=tasks,
            model_actions=actions,
            watch=RunWatch(services.runs, window),
            frames=FrameTicker(window, FRAME_MS),
            figures=FrameTicker(window, FIGURES_MS),
        )
