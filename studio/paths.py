"""Where Layby keeps its files, and the only reader of environment variables. Any thread; no Qt.

LAYBY_HOME puts everything below one folder; otherwise each kind lies where the system keeps it.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import platformdirs

_APP_NAME = "layby"
_VARIABLE_PREFIXES = ("LAYBY_", "LLAMA_ARG_PREEMPT_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """The folders and files of one user. Nothing is created until something is written."""

    data: Path
    cache: Path
    config: Path
    logs: Path

    @property
    def history_file(self) -> Path:
        return self.data / "history.db"

    @property
    def models_folder(self) -> Path:
        return self.data / "models"

    @property
    def calibrations_file(self) -> Path:
        return self.data / "calibrations.json"

    @property
    def load_settings_file(self) -> Path:
        return self.config / "load_settings.json"

    @property
    def keys_file(self) -> Path:
        return self.config / "keys.json"

    @property
    def tool_servers_file(self) -> Path:
        return self.config / "tool_servers.json"

    @property
    def facts_file(self) -> Path:
        return self.cache / "model_facts.json"

    @property
    def settings_file(self) -> Path:
        return self.config / "settings.json"

    @property
    def log_file(self) -> Path:
        return self.logs / "layby.log"


def find_paths() -> Paths:
    """The folders as LAYBY_HOME or the system says, absolute."""
    home = os.environ.get("LAYBY_HOME", "").strip()
    if home:
        root = Path(home).expanduser().absolute()
        return Paths(
            data=root / "data", cache=root / "cache", config=root / "config", logs=root / "logs"
        )
    return Paths(
        data=platformdirs.user_data_path(_APP_NAME, appauthor=False),
        cache=platformdirs.user_cache_path(_APP_NAME, appauthor=False),
        config=platformdirs.user_config_path(_APP_NAME, appauthor=False),
        logs=platformdirs.user_log_path(_APP_NAME, appauthor=False),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCaches:
    """Folders in which other programs keep models, there or not."""

    lm_studio: tuple[Path, ...] = ()
    ollama: tuple[Path, ...] = ()
    hugging_face: tuple[Path, ...] = ()


def find_model_caches() -> ModelCaches:
    """Where those programs say that they keep them."""
    home = Path.home()
    ollama = os.environ.get("OLLAMA_MODELS", "").strip()
    hub = os.environ.get("HF_HUB_CACHE", "").strip()
    hf_home = os.environ.get("HF_HOME", "").strip()
    return ModelCaches(
        lm_studio=(home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models"),
        ollama=(
            Path(ollama) if ollama else home / ".ollama" / "models",
            Path("/usr/share/ollama/.ollama/models"),
        ),
        hugging_face=(
            Path(hub)
            if hub
            else (Path(hf_home) if hf_home else home / ".cache" / "huggingface") / "hub",
        ),
    )


def child_environment(temporary: Path) -> dict[str, str]:
    """This process's environment for a child that keeps its temporary files in `temporary`."""
    return {**os.environ, "TMPDIR": str(temporary), "TEMP": str(temporary), "TMP": str(temporary)}


def has_display() -> bool:
    """Whether a window can be shown. Only on Linux it may be that none can: Qt then ends the program without a word."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    return sys.platform != "linux" or any(os.environ.get(name) for name in names)


def layby_variables() -> dict[str, str]:
    """The LAYBY_ variables of this process that are not empty, and those of other programs that mean the same."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(_VARIABLE_PREFIXES) and value.strip()
    }
