"""What the rows of a transcript are made with, passed down as one thing. GUI thread; must not import services."""

from __future__ import annotations

from dataclasses import dataclass

from studio.views.chat.formulas import Formulas
from studio.views.chat.slices import Slices
from studio.views.theme import Theme


@dataclass(frozen=True, slots=True)
class Kit:
    """Shared by all rows of one transcript."""

    theme: Theme
    formulas: Formulas
    slices: Slices
