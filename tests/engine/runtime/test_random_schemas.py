"""Whatever a schema asks for, a reply that ends is valid JSON of it: random schemas, on a model of random weights."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from engine.api import Finished, FinishReason, Grammar, GrammarKind, Request, SamplingParams
from engine.runtime.engine import Engine
from fakes.listening import run_all
from fakes.parking_rig import ask, load
from fakes.random_schemas import random_schema
from fakes.tiny_files import write_tiny_folder

CONTEXT = 4096
BATCH = 20
FORMATS = FormatChecker(formats=("date", "ipv4", "ipv6", "uuid", "email"))
"""Those that jsonschema checks by their definition; its `time` is an older draft's."""


@pytest.fixture(scope="module")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    return write_tiny_folder(folder, context_tokens=CONTEXT)


def asked(seed: int, schema: dict[str, object]) -> Request:
    return ask(
        f"r{seed}",
        ignore_eos=False,
        max_tokens=CONTEXT - 200,
        sampling=SamplingParams(temperature=1.0, top_k=40, seed=seed),
        grammar=Grammar(kind=GrammarKind.JSON_SCHEMA, source=json.dumps(schema)),
    )


def assert_valid(engine: Engine, seeds: range) -> None:
    schemas = {seed: random_schema(Random(seed)) for seed in seeds}
    ear = run_all(engine, [asked(seed, schema) for seed, schema in schemas.items()])
    for seed, schema in schemas.items():
        end, text = ear.wait_end(f"r{seed}"), ear.text(f"r{seed}")
        assert isinstance(end, Finished), (end, schema)
        assert end.reason is FinishReason.STOP, (text, schema)
        validator = Draft202012Validator(schema, format_checker=FORMATS)
        assert not list(validator.iter_errors(json.loads(text))), (text, schema)


@pytest.mark.parametrize("first", range(0, 100, BATCH))
def test_replies_to_random_schemas_are_valid(engine: Engine, model_path: Path, first: int) -> None:
    load(engine, model_path, pool_tokens=BATCH * CONTEXT, parallel=BATCH)
    assert_valid(engine, range(first, first + BATCH))


@pytest.mark.full
@pytest.mark.parametrize("first", range(100, 400, BATCH))
def test_replies_to_more_random_schemas_are_valid_also_where_they_are_parked(
    engine: Engine, model_path: Path, first: int
) -> None:
    load(
        engine, model_path, pool_tokens=BATCH * CONTEXT // 8, parallel=BATCH, test_preempt_every=40
    )
    assert_valid(engine, range(first, first + BATCH))
