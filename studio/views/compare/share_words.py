"""Which columns of a comparison read the prompt together, in words. Pure functions on the GUI thread."""

from __future__ import annotations

from collections.abc import Sequence

from studio.models.chat_settings import ChatSettings
from studio.services.compare_service import alike
from studio.views.words import tr


def share_words(settings: Sequence[ChatSettings]) -> str:
    """ "Columns 1, 2 and 3 share what they read. Column 4 has another system prompt and reads for itself." """
    groups = alike(settings)
    if len(groups) == 1:
        return tr("What the columns have in common is read once.")
    if len(groups) == len(settings):
        return tr("Each column has another system prompt and reads for itself.")
    return " ".join(_group_words(group) for group in groups)


def _group_words(group: Sequence[int]) -> str:
    *some, last = (str(place + 1) for place in group)
    if not some:
        text = tr("Column {column} has another system prompt and reads for itself.")
        return text.format(column=last)
    columns = tr("{some} and {last}").format(some=", ".join(some), last=last)
    return tr("Columns {columns} share what they read.").format(columns=columns)
