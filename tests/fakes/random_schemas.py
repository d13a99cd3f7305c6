"""Random JSON schemas of moderate depth, each of whose values a reply of some thousand tokens can hold."""

from __future__ import annotations

from random import Random
from typing import Any

Schema = dict[str, Any]

_NAMES = ("name", "age", "tags", "a b", 'quo"te', "\u00e9", "x", "id", "Value_1", "back\\slash")
_PATTERNS = ("^[a-z]{2,5}$", "^(yes|no)!?$", "^[A-Z][a-z]{0,4} [0-9]{3}$", "[0-9]x", "^\\d{2}$")
_FORMATS = ("date", "time", "date-time", "ipv4", "ipv6", "uuid", "email", "hostname")
_VALUES = ("red", "blue", "\u00fc", 'a"b', 3, -1.5, True, None, "", {"k": [1]}, [])


def random_schema(dice: Random, *, depth: int = 3) -> Schema:
    """A sound schema; `depth` is of objects and arrays in one another."""
    schema = _of_any_kind(dice, depth)
    if dice.random() < 0.3:
        name = dice.choice(("item", "node"))
        inner = _of_any_kind(dice, 1)
        schema = {
            "type": "object",
            "properties": {"it": {"$ref": f"#/$defs/{name}"}, "rest": schema},
            "required": dice.choice((["it"], ["it", "rest"])),
            "additionalProperties": False,
            "$defs": {name: inner},
        }
    return schema


def _of_any_kind(dice: Random, depth: int) -> Schema:
    leaves = (_text, _text, _integer, _number, _choice, _constant, _simple)
    if depth == 0:
        return dice.choice(leaves)(dice)
    return dice.choice(
        (
            *(lambda dice, leaf=leaf: leaf(dice) for leaf in dice.sample(leaves, 2)),
            lambda dice: _record(dice, depth),
            lambda dice: _record(dice, depth),
            lambda dice: _record(dice, depth),
            lambda dice: _list(dice, depth),
            lambda dice: _list(dice, depth),
            lambda dice: _map(dice, depth),
            lambda dice: {"anyOf": [_of_any_kind(dice, depth - 1) for _ in range(2)]},
            lambda dice: {"oneOf": [_text(dice), _record(dice, depth - 1), {"type": "null"}]},
            lambda dice: {"allOf": [_record(dice, depth), {"type": "object"}]},
        )
    )(dice)


def _text(dice: Random) -> Schema:
    kind = dice.random()
    if kind < 0.25:
        return {"type": "string", "pattern": dice.choice(_PATTERNS), "maxLength": 12}
    if kind < 0.45:
        return {"type": "string", "format": dice.choice(_FORMATS), "maxLength": 50}
    least = dice.choice((0, 0, 1, 3))
    return {"type": "string", "minLength": least, "maxLength": least + dice.randint(0, 9)}


def _integer(dice: Random) -> Schema:
    low = dice.choice((-1000, -7, 0, 5, 10**9, -(10**12)))
    schema: Schema = {
        "type": "integer",
        "minimum": low,
        "maximum": low + dice.choice((0, 9, 12345)),
    }
    if dice.random() < 0.3:
        schema["exclusiveMinimum"] = schema.pop("minimum") - 1
    if dice.random() < 0.2:
        schema = {"type": "integer", "minimum": 0, "maximum": 999, "multipleOf": 7}
    return schema


def _number(dice: Random) -> Schema:
    low = dice.choice((-10.5, 0, 0.25, 100))
    return {"type": "number", "minimum": low, "maximum": low + dice.choice((0.5, 3, 1000))}


def _choice(dice: Random) -> Schema:
    return {"enum": dice.sample(_VALUES, dice.randint(1, 5))}


def _constant(dice: Random) -> Schema:
    return {"const": dice.choice(_VALUES)}


def _simple(dice: Random) -> Schema:
    return {"type": dice.choice(("boolean", "null", ["null", "boolean"]))}


def _record(dice: Random, depth: int) -> Schema:
    names = dice.sample(_NAMES, dice.randint(0, 4))
    schema: Schema = {
        "type": "object",
        "properties": {name: _of_any_kind(dice, depth - 1 if depth else 0) for name in names},
        "required": [name for name in names if dice.random() < 0.6],
        "additionalProperties": False,
    }
    return schema


def _list(dice: Random, depth: int) -> Schema:
    least = dice.randint(0, 2)
    schema: Schema = {
        "type": "array",
        "items": _of_any_kind(dice, depth - 1),
        "minItems": least,
        "maxItems": least + dice.randint(0, 2),
    }
    if dice.random() < 0.3:
        schema["prefixItems"] = [_of_any_kind(dice, 0) for _ in range(dice.randint(1, 2))]
        schema["maxItems"] = max(schema["maxItems"], 2)
    return schema


def _map(dice: Random, depth: int) -> Schema:
    """Names are free, so a reply may repeat one: fewer than two are asked for."""
    return {
        "type": "object",
        "patternProperties": {"^[a-z]{1,4}$": _of_any_kind(dice, depth - 1)},
        "additionalProperties": False,
        "minProperties": dice.choice((0, 1)),
        "maxProperties": dice.randint(1, 3),
    }
