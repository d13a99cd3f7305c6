"""`layby models`: what is added, listed, verified and removed, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fakes.tiny_files import write_tiny_gguf
from studio.__main__ import main
from studio.paths import find_paths


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_tiny_gguf(tmp_path).rename(tmp_path / "Tiny.gguf")


def test_models_are_added_listed_verified_and_removed(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def out(*arguments: str) -> str:
        assert main(["models", *arguments]) == 0
        return capsys.readouterr().out

    assert out("list").startswith("The library is empty.\nTo fetch: layby models get smollm2-135m")
    assert out("add", str(model)) == f"Tiny is in the library, from {model}\n"
    size = f"{model.stat().st_size / 1e6:.0f}"
    assert out("list").splitlines()[0].split() == ["Tiny", size, "MB", "linked", str(model)]
    (record,) = json.loads(out("list", "--json"))
    assert record == {
        "name": "Tiny",
        "path": str(model),
        "size_bytes": model.stat().st_size,
        "sha256": None,
        "source": "linked",
        "is_missing": False,
    }
    assert out("verify").startswith("sound    Tiny  Tiny.gguf  sha256 ")
    assert out("remove", "tiny") == "Tiny is forgotten; its files stay\n"
    assert model.exists()
    assert json.loads(out("list", "--json")) == []


def broken_models(folder: Path, sound: Path) -> dict[Path, str]:
    """Models that cannot be loaded, each with what is said about it."""
    short, cut, other = folder / "short.gguf", folder / "cut.gguf", folder / "other.gguf"
    short.write_bytes(b"GGUF" + bytes(16))
    cut.write_bytes(sound.read_bytes()[:-1000])
    other.write_bytes(b"not a model")
    pickled = folder / "pickled"
    pickled.mkdir()
    (pickled / "config.json").write_text(json.dumps({"model_type": "llama"}))
    (pickled / "pytorch_model.bin").write_bytes(b"PK")
    return {
        short: "short.gguf: ",
        cut: "cut.gguf: ",
        other: "begins with 6e 6f 74 20",
        pickled: "pickle",
    }


def test_what_the_engine_refuses_does_not_enter_the_library(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, words in broken_models(tmp_path, model).items():
        assert main(["models", "add", str(path)]) == 1
        said = capsys.readouterr().err
        assert words in said
        assert said.count("\n") == 1
    assert not find_paths().models_folder.exists()


def test_a_model_damaged_later_fails_the_verification_and_the_others_are_still_told(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = model.with_name("Other.gguf")
    other.write_bytes(model.read_bytes())
    assert main(["models", "add", str(model)]) == main(["models", "add", str(other)]) == 0
    model.write_bytes(model.read_bytes()[:-1000])
    capsys.readouterr()
    assert main(["models", "verify"]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("WRONG    Tiny  Tiny.gguf: ")
    assert second.startswith("sound    Other  Other.gguf  sha256 ")


def a_fetched_model() -> Path:
    folder = find_paths().models_folder
    folder.mkdir(parents=True)
    path = folder / "SmolLM2-135M-Instruct.Q4_1.gguf"
    path.write_bytes(b"GGUF but not the right one")
    (folder / "library.json").write_text(json.dumps({"links": [], "fetched": [path.name]}))
    return path


def test_deleting_a_fetched_file_needs_a_yes(capsys: pytest.CaptureFixture[str]) -> None:
    path = a_fetched_model()
    assert main(["models", "remove", "smollm2-135m"]) == 1
    assert "say --yes" in capsys.readouterr().err
    assert path.exists()
    assert main(["models", "remove", "smollm2-135m", "--yes"]) == 0
    assert not path.exists()


def test_a_wrong_hash_fails_the_verification(capsys: pytest.CaptureFixture[str]) -> None:
    a_fetched_model()
    assert main(["models", "verify", "smollm2-135m"]) == 1
    assert capsys.readouterr().out.startswith("WRONG    smollm2-135m")
