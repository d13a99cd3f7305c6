"""What all wire types are made of: strictness, fields of our own, and the one way to say that a value is wrong.

Any thread; no web framework, no route.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError


class WireModel(BaseModel):
    """Strict types, finite numbers, unknown fields ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, allow_inf_nan=False)


def wrong_value(message: str) -> PydanticCustomError:
    """An error about the field being read; the reader of the body puts the field's name before the message."""
    return PydanticCustomError("layby_value", "{message}", {"message": message})


def only(*off: object) -> AfterValidator:
    """Refuses a field unless its value is null or one of `off`: values that ask for nothing."""

    def check(value: object) -> object:
        if value is not None and value not in off:
            raise wrong_value("is not supported yet; leave it out")
        return value

    return AfterValidator(check)


MaxWait = Annotated[float, Field(ge=0, le=1e9)] | None
"""Seconds in line and parked, taken together, after which the request ends instead of waiting longer."""

PingInterval = Annotated[int, Field(ge=-1, le=3600)] | None
"""Seconds of silence until a ping, for this stream; -1: none."""
