"""Models as Ollama's clients list them: what is loaded, what a request may name, and what is known of each. Pure."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from engine.api import ModelInfo
from studio.server.framing import Json
from studio.server.model_lists import ListedModel

_UNITS = ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "K"))
_FOREVER = "9999-12-31T23:59:59Z"


def listed(model: ListedModel) -> Json:
    """An entry of /api/tags."""
    offer = model.offer
    return {
        "name": offer.name,
        "model": offer.name,
        "modified_at": _time(offer.created_s),
        "size": offer.size_bytes,
        "digest": _digest(str(offer.path), offer.size_bytes, offer.created_s),
        "details": _details(model.info),
    }


def running(model: ListedModel, *, expires_s: float | None) -> Json:
    """An entry of /api/ps. `expires_s`: Unix time when the model will leave; None: it stays."""
    entry = listed(model)
    del entry["modified_at"]
    return {
        **entry,
        "expires_at": _FOREVER if expires_s is None else _time(int(expires_s)),
        "size_vram": 0,
        "context_length": model.window_tokens,
    }


def shown(model: ModelInfo, *, template: str = "") -> Json:
    """The answer of /api/show; the template is known of a model that is loaded."""
    architecture = model.architecture
    facts: Json = {
        "general.architecture": architecture,
        "general.basename": model.name,
        "general.parameter_count": model.parameters,
        f"{architecture}.context_length": model.context_tokens,
    }
    if model.embedding_size:
        facts[f"{architecture}.embedding_length"] = model.embedding_size
    return {
        "modelfile": f"# {model.name} is a model of Layby's library\nFROM {model.path}\n",
        "parameters": "",
        "template": template,
        "license": model.license,
        "details": _details(model),
        "model_info": facts,
        "capabilities": _capabilities(model),
        "modified_at": _time(model.created_s),
    }


def _capabilities(model: ModelInfo) -> list[str]:
    """Every model that writes is offered tools: in plain words, where its template has no place for them."""
    if model.embedding_size:
        return ["embedding"]
    return ["completion", "tools", *(["thinking"] if model.thinks else [])]


def _details(info: ModelInfo | None) -> Json:
    if info is None:
        return {
            "parent_model": "",
            "format": "",
            "family": "",
            "families": [],
            "parameter_size": "",
            "quantization_level": "",
        }
    return {
        "parent_model": "",
        "format": "gguf" if info.path.suffix == ".gguf" else "safetensors",
        "family": info.architecture,
        "families": [info.architecture],
        "parameter_size": _parameter_size(info.parameters),
        "quantization_level": info.quantization,
    }


def _parameter_size(parameters: int) -> str:
    """134515008 -> "134.52M"."""
    for unit, letter in _UNITS:
        if parameters >= unit:
            return f"{parameters / unit:.2f}".rstrip("0").rstrip(".") + letter
    return str(parameters)


def _digest(*facts: object) -> str:
    """Tells this file from others and from itself at another time; it is not that of its content."""
    return hashlib.sha256("\0".join(map(str, facts)).encode()).hexdigest()


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
