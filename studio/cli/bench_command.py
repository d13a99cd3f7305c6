"""`layby bench`: measures this machine with models, prints each part as soon as it is known, keeps calibrations.

What is being measured goes to standard error, figures to standard output. Torch is loaded when something is measured.
"""

from __future__ import annotations

import platform
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from engine.api import ModelInfo
from studio import __version__
from studio.bench.plan import (
    DEFAULT_PARTS,
    QUICK_LENGTHS,
    QUICK_LOAD,
    BenchPlan,
    BenchWishes,
    ChatLoad,
    Lengths,
    Part,
)
from studio.bench.report import (
    Report,
    Section,
    Surroundings,
    report_json,
    report_markdown,
    section_text,
)
from studio.cli.machine_checks import describe_processor
from studio.models.errors import StudioError
from studio.models.settings import Settings
from studio.services.calibration_store import CalibrationKey, CalibrationStore


@dataclass(frozen=True, slots=True)
class BenchJob:
    """What is measured of a model, and what its calibration is kept under."""

    plan: BenchPlan
    key: CalibrationKey


def make_plan(wishes: BenchWishes, settings: Settings, info: ModelInfo) -> BenchPlan:
    """The wishes and the settings as what is measured."""
    engine = settings.engine
    calibrating = (Part.STEPS, Part.PARKS)
    default = calibrating if wishes.is_calibrating else DEFAULT_PARTS
    parts = tuple(Part(name) for name in wishes.parts) or default
    return BenchPlan(
        model=info.path,
        model_name=info.name,
        model_bytes=info.size_bytes,
        storage=info.quantization,
        window_tokens=info.context_tokens,
        options=settings.load_options(),
        server_flags=(
            *("--threads", str(engine.threads), "--device", engine.device.value),
            *("--cpu-variant", engine.cpu_variant, "--batch-size", str(engine.batch_size)),
            *("--kv-type", engine.kv_type.value),
        ),
        api_key=settings.server.api_key or None,
        parts=tuple(p for p in parts if p is not Part.AGAINST or wishes.llama_server is not None),
        rounds=1 if wishes.is_quick else wishes.rounds,
        is_quick=wishes.is_quick,
        llama_server=wishes.llama_server,
        load=QUICK_LOAD if wishes.is_quick else ChatLoad(),
        lengths=QUICK_LENGTHS if wishes.is_quick else Lengths(),
    )


def calibration_key(model: Path, size_bytes: int, settings: Settings) -> CalibrationKey:
    """What a calibration of this model, as it is loaded by these settings, is kept under."""
    engine = settings.engine
    return CalibrationKey(
        model=str(model.resolve()),
        size_bytes=size_bytes,
        device=engine.device.value,
        cpu_variant=engine.cpu_variant,
        kv_type=engine.kv_type.value,
    )


def run_bench(jobs: Sequence[BenchJob], wishes: BenchWishes, store: CalibrationStore) -> int:
    """Measure and print; the exit code. Raises StudioError, EngineError or OSError when that cannot be done."""
    # Ended like by Ctrl+C, so that no server that it started is left behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    is_table = not wishes.as_json and not wishes.as_markdown
    reports = []
    for job in jobs:
        surroundings = describe_surroundings(job.plan)
        if is_table:
            sys.stdout.write(surroundings.lines())
        sections = []
        for section in measure(job, wishes, store):
            sections.append(section)
            if is_table:
                sys.stdout.write(section_text(section))
                sys.stdout.flush()
        reports.append(Report(surroundings, tuple(sections)))
    if wishes.as_json:
        sys.stdout.write(report_json(reports))
    elif wishes.as_markdown:
        sys.stdout.write(report_markdown(reports))
    return 0


def measure(job: BenchJob, wishes: BenchWishes, store: CalibrationStore) -> Iterator[Section]:
    """Every part of the plan, one after the other."""
    # Here and not above: they load torch.
    from studio.bench.against import measure_against
    from studio.bench.busy import measure_busy
    from studio.bench.inside import InsideBench
    from studio.bench.outside import measure_gaps, measure_scenarios, measure_start

    plan = job.plan
    try:
        inside = InsideBench(plan)
    except ValueError as error:
        raise StudioError(f"{plan.model_name} cannot be measured: {error}") from error
    parts: dict[Part, Callable[[], Section]] = {
        Part.MACHINE: inside.machine,
        Part.STEPS: inside.steps,
        Part.PARKS: inside.parks,
        Part.PERPLEXITY: inside.perplexity,
        Part.START: lambda: measure_start(plan, _say),
        Part.SCENARIOS: lambda: measure_scenarios(plan, _say),
        Part.BUSY: lambda: measure_busy(plan, _say),
        Part.AGAINST: lambda: measure_against(plan, _say),
        Part.GAPS: lambda: measure_gaps(plan, _say),
    }
    for part in plan.parts:
        _say(f"{plan.model_name}: {part.value}")
        yield parts[part]()
    if wishes.is_calibrating:
        store.save(job.key, inside.calibration())
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
