"""What machine and model were measured to do, kept for the simulator: one small JSON file. Any thread, no Qt.

A calibration holds for one model file, one device and one kind of kernels; measured again, it is replaced.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.sim.calibration import Calibration, read_calibration, write_calibration
from studio.models.errors import StudioError
from studio.models.json_faults import json_fault
from studio.services.safe_file import write_atomically

_FORMAT = "layby-calibrations-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationKey:
    """What a calibration holds for. A model file that is replaced by another has another size."""

    model: str
    size_bytes: int
    device: str
    cpu_variant: str
    kv_type: str


class CalibrationStore:
    """The file is read anew at each call; nothing is created before something is saved."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def find(self, key: CalibrationKey) -> Calibration | None:
        """The calibration of that key, None if there is none. Raises StudioError when the file cannot be used."""
        for entry in self._read():
            if entry.get("key") == asdict(key):
                try:
                    return read_calibration(entry["figures"])
                except (KeyError, AttributeError, ValueError) as error:
                    raise self._broken(error) from error
        return None

    def save(self, key: CalibrationKey, calibration: Calibration) -> None:
        """Keep it in place of an earlier one. Raises StudioError or OSError, with the file unharmed."""
        others = [entry for entry in self._read() if entry.get("key") != asdict(key)]
        entries = [*others, {"key": asdict(key), "figures": write_calibration(calibration)}]
        text = json.dumps({"format": _FORMAT, "calibrations": entries}, indent=1) + "\n"
        write_atomically(self._file, text.encode())

    def _read(self) -> list[dict[str, Any]]:
        try:
            data = json.loads(self._file.read_text("utf-8"))
        except FileNotFoundError:
            return []
        except ValueError as error:
            raise self._broken(error) from error
        if not isinstance(data, dict) or data.get("format") != _FORMAT:
            raise self._broken(ValueError(f"its format is not {_FORMAT}"))
        entries = data.get("calibrations")
        if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
            raise self._broken(ValueError("it has no list of calibrations"))
        return entries

    def _broken(self, error: Exception) -> StudioError:
        return StudioError(
            f"the calibrations in {self._file} cannot be read ({json_fault(error)}); delete the file and "
            "measure again with `layby bench --calibrate`"
        )
