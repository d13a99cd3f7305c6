"""Runs fuzz cases in a process of its own, within limits, and reports each on a line of JSON.

    python -m fakes.fuzz.worker SEED START STOP STEP FOLDER

runs cases START, START + STEP, ... below STOP; FOLDER is scratch space and keeps the files of the
last case. A case opens a mutated model, looks at it, reads every tensor, its spec, its tokenizer
and its chat template; the only exceptions allowed are the engine's own.
"""

from __future__ import annotations

import faulthandler
import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random

import psutil

from engine.errors import EngineError, NotEnoughMemory
from engine.formats.checkpoint import Checkpoint, inspect_model, open_checkpoint
from engine.models.spec import parse_spec
from engine.text.chat_template import load_chat_template
from engine.text.tokenizer import Tokenizer, load_tokenizer
from fakes.fuzz import mutate_folder, mutate_gguf
from fakes.fuzz.models import Model, sound_models

MEMORY_BYTES = 1 << 30
HANG_S = 60
_SAMPLE = "Hello <|im_end|> wörld 🎉\n12"


def mutate(random: Random, model: Model) -> Model:
    """The model with lies in one of its files (a folder: in any)."""
    if not model.opened:
        return Model(mutate_folder.lie(random, model.files), "")
    files = dict(model.files)
    name = random.choice(sorted(files))
    if len(files) > 1 and random.random() < 0.2:
        content = files.pop(name)
        files[random.choice((*model.files, "other.gguf"))] = content
    else:
        files[name] = mutate_gguf.lie(random, files[name])
    return Model(files, model.opened if random.random() < 0.9 else "")


def load(path: Path) -> list[str]:
    """Do all that loading a model does with its files; returns what each stage came to."""
    outcomes: list[str] = []
    stage("inspect", lambda: inspect_model(path, "case"), outcomes)
    checkpoint = stage("open", lambda: open_checkpoint(path), outcomes)
    if isinstance(checkpoint, Checkpoint):
        stage("read", lambda: read_tensors(checkpoint), outcomes)
        stage("spec", lambda: parse_spec(checkpoint), outcomes)
        tokenizer = stage("tokenizer", lambda: load_text(checkpoint), outcomes)
        if isinstance(tokenizer, Tokenizer):
            stage("template", lambda: render(checkpoint, tokenizer), outcomes)
        checkpoint.close()
    return outcomes


def stage(name: str, action: Callable[[], object], outcomes: list[str]) -> object:
    """Run one stage; an error of the engine is its outcome, any other ends the case."""
    try:
        result = action()
    except NotEnoughMemory:
        raise
    except EngineError as error:
        message = str(error)
        if not message.isprintable() or not 20 < len(message) < 2000:
            raise ValueError(f"a message nobody can read: {message[:2000]!r}") from error
        outcomes.append(f"{name} {type(error).__name__}")
        return None
    outcomes.append(f"{name} ok")
    return result


def read_tensors(checkpoint: Checkpoint) -> None:
    for name, info in checkpoint.tensors.items():
        values = checkpoint.read_float32(name)
        assert values.shape == info.shape
        assert values.dtype.name == "float32"


def load_text(checkpoint: Checkpoint) -> Tokenizer:
    tokenizer = load_tokenizer(checkpoint)
    ids = tokenizer.encode(_SAMPLE, parse_special=True, add_special=True)
    assert all(0 <= token_id < tokenizer.vocab_size for token_id in ids)
    tokenizer.decode(ids)
    return tokenizer


def render(checkpoint: Checkpoint, tokenizer: Tokenizer) -> None:
    template = load_chat_template(checkpoint, tokenizer)
    template.render(
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": _SAMPLE}]
    )


def limit_memory() -> None:
    """Let this process have 1 GiB more than now; where that cannot be asked for, peaks are checked."""
    if sys.platform == "linux":
        import resource

        most = psutil.Process().memory_info().vms + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def peak_bytes() -> int:
    """The most memory this process has held so far."""
    if sys.platform == "linux":  # its ru_maxrss starts from that of the parent process
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0]) * 1024
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def run_case(seed: int, case: int, models: list[Model], folder: Path) -> dict[str, object]:
    """One line of the report."""
    random = Random(f"{seed}/{case}")
    path = mutate(random, random.choice(models)).write(folder)
    failure = ""
    outcomes: list[str] = []
    started, started_cpu = time.perf_counter(), time.process_time()
    try:
        outcomes = load(path)
    except BaseException:  # noqa: BLE001 - whatever else comes out, panics of native code too, is the finding
        failure = traceback.format_exc(limit=-6)
    return {
        "case": case,
        "outcomes": outcomes,
        "failure": failure,
        "wall_s": time.perf_counter() - started,
        "cpu_s": time.process_time() - started_cpu,
    }


def say(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> None:
    seed, start, stop, step = map(int, arguments[:4])
    folder = Path(arguments[4])
    models = sound_models(folder / "sound")
    for model in models:  # imports and caches are not the first case's
        outcomes = load(model.write(folder / "case"))
        assert all(outcome.endswith(" ok") for outcome in outcomes), (model.opened, outcomes)
    limit_memory()
    before = peak_bytes()
    for case in range(start, stop, step):
        say({"started": case})
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        report = run_case(seed, case, models, folder / "case")
        faulthandler.cancel_dump_traceback_later()
        say({**report, "memory_bytes": peak_bytes() - before})


if __name__ == "__main__":
    main(sys.argv[1:])
