"""What all wire types are made of: strictness, fields of our own, and the one way to say that a value is wrong.

Any thread; no web framework, no route.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import (
    no_info_after_validator_function,
    no_info_before_validator_function,
)


def whole_number(value: object) -> object:
    """8.0 -> 8: to JSON both are the same, and some languages know no other way; the rest stays as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_WHOLE = {"type": "no-info", "function": whole_number}


def _with_points(schema: Any) -> Any:
    """A core schema with `whole_number` before each of its integers."""
    if isinstance(schema, list | tuple):
        return type(schema)(_with_points(part) for part in schema)
    if not isinstance(schema, dict) or schema.get("function") == _WHOLE:
        return schema
    if schema.get("type") == "int":
        return no_info_before_validator_function(whole_number, schema)
    return {key: _with_points(part) for key, part in schema.items()}


class WireModel(BaseModel):
    """Strict types, finite numbers, unknown fields ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, allow_inf_nan=False)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[BaseModel], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Every whole number in it may be written with a point."""
        return cast(CoreSchema, _with_points(handler(source)))


def wrong_value(message: str) -> PydanticCustomError:
    """An error about the field being read; the reader of the body puts the field's name before the message."""
    return PydanticCustomError("layby_value", "{message}", {"message": message})


NOT_SERVED = "Not served: only values are taken that ask for nothing."


@dataclass(frozen=True, slots=True, eq=False)
class Only:
    """Refuses a field unless its value is null or one of `off`; JSON schema says the same.

    Never equal to another: `Annotated` would take one for 0 for one for False.
    """

    off: tuple[Any, ...]

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"enum": [None, *self.off], "description": NOT_SERVED}

    def _check(self, value: object) -> object:
        asks_nothing = value is None or any(
            value == each and isinstance(value, bool) is isinstance(each, bool) for each in self.off
        )
        if not asks_nothing:
            raise wrong_value("is not supported yet; leave it out")
        return value


def only(*off: object) -> Only:
    """For a field that is not supported: `off` are values that ask for nothing."""
    return Only(off)


Object = dict[str, Any]
Objects = list[Object]
"""What fields look like in the document of the API that are read by functions of their own."""

MaxWait = Annotated[float, Field(ge=0, le=1e9)] | None
"""Seconds in line and parked, taken together, after which the request ends instead of waiting longer."""

PingInterval = Annotated[int, Field(ge=-1, le=3600)] | None
"""Seconds of silence until a ping, for this stream; -1: none."""
