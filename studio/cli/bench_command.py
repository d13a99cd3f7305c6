"""`layby bench`: measures this machine with a model, prints each part as soon as it is known, keeps a calibration.

What is being measured goes to standard error, figures to standard output. Torch is loaded when something is measured.
"""

from __future__ import annotations

import platform
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from engine.api import ModelInfo
from studio import __version__
from studio.bench.plan import (
    DEFAULT_PARTS,
    QUICK_LOAD,
    BenchPlan,
    BenchWishes,
    ChatLoad,
    Part,
)
from studio.bench.report import Section, Surroundings, report_json, section_text
from studio.cli.machine_checks import describe_processor
from studio.models.errors import StudioError
from studio.models.settings import Settings
from studio.services.calibration_store import CalibrationKey, CalibrationStore


def make_plan(wishes: BenchWishes, settings: Settings, info: ModelInfo) -> BenchPlan:
    """The wishes and the settings as what is measured."""
    engine = settings.engine
    calibrating = (Part.STEPS, Part.PARKS)
    default = calibrating if wishes.is_calibrating else DEFAULT_PARTS
    return BenchPlan(
        model=info.path,
        model_name=info.name,
        model_bytes=info.size_bytes,
        window_tokens=info.context_tokens,
        options=settings.load_options(),
        server_flags=(
            *("--threads", str(engine.threads), "--device", engine.device.value),
            *("--cpu-variant", engine.cpu_variant, "--batch-size", str(engine.batch_size)),
        ),
        api_key=settings.server.api_key or None,
        parts=tuple(Part(name) for name in wishes.parts) or default,
        rounds=1 if wishes.is_quick else wishes.rounds,
        is_quick=wishes.is_quick,
        llama_server=wishes.llama_server,
        load=QUICK_LOAD if wishes.is_quick else ChatLoad(),
    )


def calibration_key(model: Path, size_bytes: int, settings: Settings) -> CalibrationKey:
    """What a calibration of this model, as it is loaded by these settings, is kept under."""
    engine = settings.engine
    return CalibrationKey(
        model=str(model.resolve()),
        size_bytes=size_bytes,
        device=engine.device.value,
        cpu_variant=engine.cpu_variant,
    )


def run_bench(
    plan: BenchPlan, wishes: BenchWishes, store: CalibrationStore, key: CalibrationKey
) -> int:
    """Measure and print; the exit code. Raises StudioError, EngineError or OSError when that cannot be done."""
    # Ended like by Ctrl+C, so that no server that it started is left behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    surroundings = describe_surroundings(plan)
    if not wishes.as_json:
        sys.stdout.write(surroundings.lines())
    sections = []
    for section in measure(plan, lambda calibration: store.save(key, calibration), wishes):
        sections.append(section)
        if not wishes.as_json:
            sys.stdout.write(section_text(section))
            sys.stdout.flush()
    if wishes.as_json:
        sys.stdout.write(report_json(surroundings, sections))
    return 0


def measure(plan: BenchPlan, keep: Callable[..., object], wishes: BenchWishes) -> Iterator[Section]:
    """Every part of the plan, one after the other."""
    # Here and not above: they load torch.
    from studio.bench.inside import InsideBench
    from studio.bench.outside import measure_gaps, measure_scenarios, measure_start

    try:
        inside = InsideBench(plan)
    except ValueError as error:
        raise StudioError(f"{plan.model_name} cannot be measured: {error}") from error
    parts: dict[Part, Callable[[], Section]] = {
        Part.MACHINE: inside.machine,
        Part.STEPS: inside.steps,
        Part.PARKS: inside.parks,
        Part.START: lambda: measure_start(plan, _say),
        Part.SCENARIOS: lambda: measure_scenarios(plan, _say),
        Part.GAPS: lambda: measure_gaps(plan, _say),
    }
    for part in plan.parts:
        _say(part.value)
        yield parts[part]()
    if wishes.is_calibrating:
        keep(inside.calibration())
        _say("the calibration is kept; `layby simulate --calibrated` uses it")


def describe_surroundings(plan: BenchPlan) -> Surroundings:
    """The machine as it is before anything is measured."""
    options = plan.options
    return Surroundings(
        version=__version__,
        system=f"{platform.platform()}, Python {platform.python_version()}",
        processor=describe_processor()[0],
        cores=psutil.cpu_count(logical=False) or psutil.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        load_before=psutil.getloadavg()[0],
        model=plan.model_name,
        model_bytes=plan.model_bytes,
        device=options.device.value,
        cpu_variant=options.cpu_variant,
        threads=options.threads,
    )


def _say(words: str) -> None:
    sys.stderr.write(f"layby bench: {words}\n")
    sys.stderr.flush()
