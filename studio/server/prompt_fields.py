"""Prompts on the wire: text, token ids, both mixed, or several of these -> plain tuples.

`read_…` take what JSON gave and raise `wrong_value` about it; beside each stands what JSON schema says of it. Any
thread; no web framework.
"""

from __future__ import annotations

from typing import Any

from studio.server.wire import whole_number, wrong_value

MAX_PROMPTS = 128
MAX_TOKEN_ID = (1 << 31) - 1
MAX_PROMPT_IDS = 1 << 20
"""Beyond any model's window; it keeps the reading of one request short."""

Prompt = str | tuple[int, ...]
"""One prompt: text, or token ids taken as they are."""

TOKEN_ID: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": MAX_TOKEN_ID}
ID_LIST: dict[str, Any] = {"type": "array", "items": TOKEN_ID, "maxItems": MAX_PROMPT_IDS}
_TEXT: dict[str, Any] = {"type": "string"}
MIXED_PROMPT: dict[str, Any] = {
    "anyOf": [
        _TEXT,
        {"type": "array", "items": {"anyOf": [_TEXT, TOKEN_ID]}, "maxItems": MAX_PROMPT_IDS},
    ]
}


def prompts_schema(most: int) -> dict[str, Any]:
    """What `read_prompts` takes."""
    return {
        "anyOf": [
            _TEXT,
            {**ID_LIST, "minItems": 1},
            {
                "type": "array",
                "items": {"anyOf": [_TEXT, ID_LIST]},
                "minItems": 1,
                "maxItems": most,
            },
        ]
    }


def read_prompts(value: object, *, most: int = MAX_PROMPTS) -> tuple[Prompt, ...]:
    """A prompt or a list of prompts, each text or token ids -> all of them."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not value:
        raise wrong_value("is no string, list of strings, list of token ids or list of such lists")
    if isinstance(value[0], int | float):
        return (_read_token_ids("", value),)
    if len(value) > most:
        raise wrong_value(f"has {len(value)} prompts, the limit is {most}")
    return tuple(_read_prompt(f"[{index}]", prompt) for index, prompt in enumerate(value))


def read_ids(value: object) -> tuple[int, ...]:
    """A list of token ids, which may be empty."""
    if not isinstance(value, list):
        raise wrong_value("is no list of token ids")
    return _read_token_ids("", value)


def read_mixed(value: object) -> tuple[str | int, ...]:
    """A text, or a list of texts and token ids that are one prompt."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise wrong_value("is no string and no list of strings and token ids")
    _check_length("", value)
    return tuple(
        part if isinstance(part, str) else _read_id(f"[{index}]", part)
        for index, part in enumerate(value)
    )


def _read_prompt(place: str, value: object) -> Prompt:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return _read_token_ids(place, value)
    raise wrong_value(
        f"has at {place} {value!r:.40}, which is neither a string nor a list of token ids"
    )


def _read_token_ids(place: str, ids: list[Any]) -> tuple[int, ...]:
    _check_length(place, ids)
    return tuple(_read_id(f"{place}[{index}]", token_id) for index, token_id in enumerate(ids))


def _check_length(place: str, ids: list[Any]) -> None:
    if len(ids) > MAX_PROMPT_IDS:
        where = f" at {place}" if place else ""
        raise wrong_value(f"has{where} {len(ids)} token ids, the limit is {MAX_PROMPT_IDS}")


def _read_id(place: str, value: object) -> int:
    token_id = whole_number(value)
    if type(token_id) is not int or not 0 <= token_id <= MAX_TOKEN_ID:
        raise wrong_value(f"has at {place} {value!r:.40}, which is no token id")
    return token_id
