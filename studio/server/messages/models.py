"""Models as Anthropic's clients list them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from engine.errors import InvalidRequest
from studio.server.framing import Json
from studio.server.model_lists import ListedModel

_MOST_MODELS = 1000


def model_entry(model: ListedModel) -> Json:
    """What is not known of a model that is not loaded is null."""
    return {
        "type": "model",
        "id": model.name,
        "display_name": model.name,
        "created_at": datetime.fromtimestamp(model.offer.created_s, UTC).strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        ),
        "lifecycle": "active",
        "max_input_tokens": model.window_tokens,
        "max_tokens": model.window_tokens,
    }


def model_page(models: Sequence[ListedModel], query: Mapping[str, str]) -> Json:
    """Those behind `after_id`, or right before `before_id`, as many as `limit` says; without one all.

    Raises InvalidRequest for an id that no model has, and for a limit out of bounds.
    """
    limit = _read_limit(query.get("limit"))
    first, end = 0, len(models)
    if (after := query.get("after_id")) is not None:
        first = _place_of("after_id", after, models) + 1
    if (before := query.get("before_id")) is not None:
        end = _place_of("before_id", before, models)
    found = models[first:end]
    page = found[-limit:] if before is not None and after is None else found[:limit]
    return {
        "data": [model_entry(each) for each in page],
        "has_more": len(page) < len(found),
        "first_id": page[0].name if page else None,
        "last_id": page[-1].name if page else None,
    }


def _read_limit(limit: str | None) -> int:
    if limit is None:
        return _MOST_MODELS
    is_number = limit.isascii() and limit.isdecimal() and len(limit) <= len(str(_MOST_MODELS))
    if not (is_number and 1 <= int(limit) <= _MOST_MODELS):
        raise InvalidRequest(
            f"limit is {limit[:40]!r}, allowed is 1 to {_MOST_MODELS}", param="limit"
        )
    return int(limit)


def _place_of(param: str, name: str, models: Sequence[ListedModel]) -> int:
    for place, model in enumerate(models):
        if model.name == name:
            return place
    raise InvalidRequest(f"{param} names {name[:100]!r}, which is no model here", param=param)
