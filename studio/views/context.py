"""What most parts of the window need, passed down as one thing. GUI thread; built by the main window only."""

from __future__ import annotations

from dataclasses import dataclass

from studio.views.chat.kit import Kit
from studio.views.frame_ticker import FrameTicker
from studio.views.model_actions import ModelActions
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
