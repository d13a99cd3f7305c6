"""Sizes of files within errors, in the units of the window: decimal ones, as file managers have them. Pure; any thread.

The window puts the figures into its language; see `studio.views.translation`.
"""

from __future__ import annotations

_KB, _MB, _GB = 1_000, 1_000_000, 1_000_000_000


def size_text(num_bytes: int) -> str:
    """12 kB, 98 MB, 1,204.1 GB; what is less than a kB is one."""
    if num_bytes < _MB:
        return f"{max(1, round(num_bytes / _KB)):,} kB"
    if num_bytes < _GB:
        return f"{round(num_bytes / _MB):,} MB"
    return f"{num_bytes / _GB:,.1f} GB"
