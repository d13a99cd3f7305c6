"""What all wire types are made of: strictness, and the one way to say that a value is wrong.

Any thread; no web framework, no route.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticCustomError


class WireModel(BaseModel):
    """Strict types, finite numbers, unknown fields ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, allow_inf_nan=False)


def wrong_value(message: str) -> PydanticCustomError:
    """An error about the field being read; the reader of the body puts the field's name before the message."""
    return PydanticCustomError("layby_value", "{message}", {"message": message})
