"""Carries out what the command line asked for. The window and the engine are imported only where they are needed."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from engine.api import ModelInfo
from engine.sim.calibration import Calibration
from studio.bench.plan import ModelWish
from studio.cli.argument_values import arguments_of
from studio.cli.models_command import ModelsCommand
from studio.cli.parser import AS_IT_WAS, Command, Options
from studio.logs import log_to_file, log_to_stderr
from studio.models.errand import Errand
from studio.models.errors import SettingError, StudioError
from studio.paths import Paths, find_paths, has_display, layby_variables
from studio.restart import start_again
from studio.services.calibration_store import CalibrationStore
from studio.services.model_catalog import read_catalog
from studio.services.model_fetcher import ModelFetcher, default_pip
from studio.services.model_library_service import ModelLibraryService
from studio.services.settings_service import SettingsService


def run_command(options: Options) -> int:
    """The exit code of the command. Raises EngineError, StudioError or OSError."""
    paths = find_paths()
    settings = SettingsService(
        paths.settings_file, environment=layby_variables(), flags=options.flags
    )
    library = ModelLibraryService(paths.models_folder, read_catalog(), inspect=_inspect)
    match options.command:
        case Command.WINDOW | Command.CHAT | Command.OPEN:
            return _open_window(options, settings, paths)
        case Command.SERVE:
            return _serve(settings, paths, library)
        case Command.SIMULATE:
            return _simulate(options, settings, paths, library)
        case Command.BENCH:
            return _bench(options, settings, paths, library)
        case Command.DOCTOR:
            # Here and not above: nobody else needs to look at the machine.
            from studio.cli.doctor import run_doctor

            return run_doctor(settings, paths, library, is_deep=options.is_deep)
        case _:
            return ModelsCommand(library, ModelFetcher(library, pip=default_pip())).run(options)


def _inspect(path: Path, name: str) -> ModelInfo:
    # Here and not above: reading a model's header needs numpy, which most commands do without.
    from studio.app import inspect_for_command_line

    return inspect_for_command_line(path, name)


def _open_window(options: Options, settings: SettingsService, paths: Paths) -> int:
    if not has_display():
        raise StudioError(
            "no display: neither DISPLAY nor WAYLAND_DISPLAY is set; the server needs none, use `layby serve`"
        )
    log_to_file(paths.log_file, settings.settings.log.level)
    from studio.app import run_window

    errand = Errand(text=options.text, files=options.files)
    what_ran = run_window(settings, paths, errand, options.what_ran)
    if what_ran is None:
        return 0
    return start_again([*arguments_of(options.flags), f"{AS_IT_WAS}={what_ran.to_text()}"])


def _simulate(
    options: Options, settings: SettingsService, paths: Paths, library: ModelLibraryService
) -> int:
    from studio.cli.simulate_command import Simulation, run_simulation

    calibration = None
    if options.is_calibrated or "engine.model" in options.flags:
        calibration = _find_calibration(options, settings, paths, library)
    simulation = Simulation(
        policies=options.policies,
        orders=options.orders,
        num_seeds=options.num_seeds,
        plot=options.plot,
        calibration=calibration,
    )
    return run_simulation(simulation)


def _find_calibration(
    options: Options, settings: SettingsService, paths: Paths, library: ModelLibraryService
) -> Calibration | None:
    """What was measured of the model. Raises StudioError where there is nothing and `--calibrated` asks for it."""
    from studio.cli.bench_command import calibration_key

    info = _named_model(settings, library, "simulate --calibrated")
    key = calibration_key(info.path, info.size_bytes, settings.settings)
    found = CalibrationStore(paths.calibrations_file).find(key)
    if found is None and options.is_calibrated:
        raise StudioError(
            f"{info.name} was not measured on this machine with device {key.device}, kernels "
            f"{key.cpu_variant} and {key.kv_type} keys and values; run: "
            f"layby bench --calibrate -m {settings.settings.engine.model}"
        )
    sys.stderr.write(
        f"layby: step times of {info.name if found else 'a 135M model on two cores'}\n"
    )
    return found


def _bench(
    options: Options, settings: SettingsService, paths: Paths, library: ModelLibraryService
) -> int:
    from studio.cli.bench_command import BenchJob, calibration_key, make_plan, run_bench

    wishes = options.bench
    models = wishes.models or (ModelWish(_model_name(settings, "bench")),)
    jobs = []
    for wish in models:
        path = library.resolve(wish.name)
        info = _inspect(path, library.name_of(path))
        key = calibration_key(info.path, info.size_bytes, settings.settings)
        parts = wish.parts or wishes.parts
        jobs.append(BenchJob(make_plan(replace(wishes, parts=parts), settings.settings, info), key))
    return run_bench(jobs, wishes, CalibrationStore(paths.calibrations_file))


def _named_model(
    settings: SettingsService, library: ModelLibraryService, command: str
) -> ModelInfo:
    """Facts about the model that flags or settings name. Raises SettingError where none is, ModelError on a bad one."""
    path = library.resolve(_model_name(settings, command))
    return _inspect(path, library.name_of(path))


def _model_name(settings: SettingsService, command: str) -> str:
    model = settings.settings.engine.model
    if not model:
        raise SettingError(
            f"no model named; name one with -m or LAYBY_MODEL, as in: layby {command} -m smollm2-135m"
        )
    return model


def _serve(settings: SettingsService, paths: Paths, library: ModelLibraryService) -> int:
    log_to_stderr(settings.settings.log.level)
    if settings.problem is not None:
        sys.stderr.write(f"layby: {settings.problem}\n")
    model = settings.settings.engine.model
    if not model:
        raise SettingError(
            "no model to serve; name one with -m or LAYBY_MODEL, as in: layby serve -m smollm2-135m"
        )
    library.resolve(model)  # a name that is wrong is told before the server takes its time to load
    from studio.app import run_server

    return run_server(settings, paths)
