"""Models of other programs are found where those keep them, and nothing there is touched."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from studio.models.model_library import Finder, FoundModel
from studio.paths import ModelCaches, find_model_caches
from studio.services.found_models import find_models

DIGEST = "sha256:" + "a" * 64


def write(path: Path, data: bytes = b"GGUF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def names(models: tuple[FoundModel, ...]) -> list[tuple[str, Finder]]:
    return [(model.name, model.finder) for model in models]


def test_lm_studios_folders_are_searched_by_publisher_and_model(tmp_path: Path) -> None:
    path = write(tmp_path / "pub" / "repo" / "B-Q4.gguf", b"12345")
    write(tmp_path / "pub" / "repo" / "mmproj-B.gguf")
    write(tmp_path / "pub" / "repo" / "notes.txt")
    write(tmp_path / "pub" / "split" / "A-00001-of-00002.gguf")
    write(tmp_path / "pub" / "split" / "A-00002-of-00002.gguf")
    models = find_models(ModelCaches(lm_studio=(tmp_path, tmp_path / "absent")))
    assert names(models) == [("A", Finder.LM_STUDIO), ("B-Q4", Finder.LM_STUDIO)]
    assert (models[1].path, models[1].size_bytes) == (path, 5)
    assert models[0].size_bytes == 8


def test_ollamas_blobs_are_found_by_their_manifests(tmp_path: Path) -> None:
    blob = write(tmp_path / "blobs" / DIGEST.replace(":", "-"))
    write(tmp_path / "blobs" / ("sha256-" + "b" * 64))
    layers = [
        {"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:" + "b" * 64},
        {"mediaType": "application/vnd.ollama.image.model", "digest": DIGEST},
    ]
    library = tmp_path / "manifests" / "registry.ollama.ai" / "library"
    write(library / "llama3" / "8b", json.dumps({"layers": layers}).encode())
    (model,) = find_models(ModelCaches(ollama=(tmp_path,)))
    assert (model.name, model.path, model.finder) == ("llama3-8b", blob, Finder.OLLAMA)


@pytest.mark.parametrize(
    "manifest",
    [b"", b"{", b"[]", b'{"layers": [1]}', b'{"layers": [{"mediaType": "x"}]}',
     json.dumps({"layers": [{"mediaType": "application/vnd.ollama.image.model",
                             "digest": "sha256:../../etc"}]}).encode()],
)  # fmt: skip
def test_odd_manifests_are_passed_over(tmp_path: Path, manifest: bytes) -> None:
    write(tmp_path / "manifests" / "r" / "l" / "m" / "t", manifest)
    assert find_models(ModelCaches(ollama=(tmp_path,))) == ()


def test_the_newest_snapshot_of_a_hub_repository_counts(tmp_path: Path) -> None:
    repository = tmp_path / "models--org--Small"
    old = write(repository / "snapshots" / "1" / "Small-Q4.gguf").parent
    new = write(repository / "snapshots" / "2" / "Small-Q4.gguf")
    os.utime(old, (1, 1))
    folder = tmp_path / "models--org--Folder" / "snapshots" / "1"
    write(folder / "config.json")
    write(folder / "model.safetensors")
    write(tmp_path / "datasets--org--Data" / "snapshots" / "1" / "x.gguf")
    models = find_models(ModelCaches(hugging_face=(tmp_path,)))
    assert {(model.name, model.path) for model in models} == {("Small-Q4", new), ("Folder", folder)}


def test_the_environment_says_where_they_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "o"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "h"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    caches = find_model_caches()
    assert caches.ollama[0] == tmp_path / "o"
    assert caches.hugging_face == (tmp_path / "h" / "hub",)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "c"))
    assert find_model_caches().hugging_face == (tmp_path / "c",)
