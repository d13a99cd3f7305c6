"""schemathesis tries the server on its own OpenAPI document: no answer of 5xx, and none but as described."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from fakes.serving import serving
from fakes.tiny_files import write_tiny_gguf

pytestmark = pytest.mark.skipif(
    find_spec("schemathesis") is None, reason="schemathesis is not installed"
)

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
)
WHOLE_S = 1200


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A tiny model under the name that the document's examples have, and room for all: nobody is told to come back."""
    model = write_tiny_gguf(tmp_path).rename(tmp_path / "smollm2-135m.gguf")
    with serving("-m", str(model), "-c", "4096", "-np", "8", home=tmp_path) as address:
        yield address


def try_out(address: str, folder: Path, *arguments: str) -> None:
    """Run schemathesis to its end; fails with what it found."""
    program = "import sys; from schemathesis.cli import schemathesis; sys.exit(schemathesis())"
    command = [sys.executable, "-c", program, "run", f"{address}/openapi.json", "--no-color"]
    checks = ["--checks", ",".join(CHECKS), "--continue-on-failure", "--workers", "1"]
    checks += ["--request-timeout", "120"]  # a hundred replies to one request take their time
    done = subprocess.run(
        [*command, *checks, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.slow
def test_every_answer_is_as_described(address: str, tmp_path: Path) -> None:
    """The document's own examples, and some drawn for each route: the same each time."""
    phases = ("--phases", "examples,fuzzing", "--max-examples", "10")
    try_out(address, tmp_path, *phases, "--generation-deterministic")


@pytest.mark.full
@pytest.mark.timeout(2 * WHOLE_S)
def test_every_answer_is_as_described_for_twenty_minutes(address: str, tmp_path: Path) -> None:
    length = ("--max-examples", "1500", "--max-time", str(WHOLE_S))
    try_out(address, tmp_path, "--seed", "7", "--generation-database", "none", *length)
