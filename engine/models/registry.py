"""Which architectures can be run: a name as files give it -> the module that records it, imported when first needed.

To add one: a module with `ARCHITECTURE`, and a line here. No torch.
"""

from __future__ import annotations

from importlib import import_module

from engine.errors import UnsupportedModel
from engine.models.architecture import Architecture

_MODULES = {
    "llama": "engine.models.llama",
    "mistral": "engine.models.llama",
    "qwen2": "engine.models.qwen2",
    "qwen3": "engine.models.qwen3",
}


def supported_architectures() -> tuple[str, ...]:
    """Names that `find_architecture` knows."""
    return tuple(_MODULES)


def find_architecture(name: str) -> Architecture:
    """Raises UnsupportedModel, naming what is supported."""
    if name not in _MODULES:
        raise UnsupportedModel(
            f"models of architecture {name!r:.80} are not supported; {', '.join(_MODULES)} are"
        )
    architecture = import_module(_MODULES[name]).ARCHITECTURE
    assert isinstance(architecture, Architecture)
    return architecture
