"""How families of models write calls: one table, asked in order about the source of a model's chat template.

A family that is not here is served by the generic format, for which calls are described to the model in plain words
(`engine.text.generic_tools`). Immutable, any thread. No torch.
"""

from __future__ import annotations

from engine.text.replies.family import Family
from engine.text.replies.json_families import GENERIC, JSON_FAMILIES
from engine.text.replies.xml_families import XML_FAMILIES

FAMILIES = (*XML_FAMILIES, *JSON_FAMILIES)


def family_of(source: str) -> Family:
    """The family of a template, the generic one where it is of none."""
    return next((family for family in FAMILIES if family.wrote(source)), GENERIC)
