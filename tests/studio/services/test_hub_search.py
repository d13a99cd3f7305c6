"""The hub is asked through its own library, here at a server of ours; addresses are read with suspicion."""

from __future__ import annotations

from collections.abc import Iterator

import huggingface_hub.constants
import pytest

from fakes.file_server import FileServer, file_server
from studio.models.errors import FetchUnavailable, LibraryError
from studio.services.hub_search import HubSearch, offer_of_address, safe_file_name

SHA = "a" * 40


def sibling(name: str, size: int) -> dict[str, object]:
    lfs = {"sha256": "b" * 64, "size": size, "pointerSize": 135}
    return {"rfilename": name, "size": size, "lfs": lfs}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with file_server() as served:
        yield served


def test_a_search_lists_repositories_with_their_licence(server: FileServer) -> None:
    server.answers["/api/models"] = [
        {"id": "org/One-GGUF", "downloads": 12, "tags": ["gguf", "license:apache-2.0"]},
        {"id": "org/Two", "downloads": 3, "tags": ["gguf"]},
    ]
    one, two = HubSearch(server.address).search("one")
    assert (one.repository, one.downloads, one.license) == ("org/One-GGUF", 12, "apache-2.0")
    assert two.license == ""


def test_a_repositorys_models_have_sizes_checksums_and_addresses(server: FileServer) -> None:
    server.answers["/api/models/org/One"] = {
        "id": "org/One",
        "sha": SHA,
        "tags": ["license:mit"],
        "siblings": [
            sibling("README.md", 10),
            sibling("One-Q8_0.gguf", 900),
            sibling("sub/One-Q4_0.gguf", 500),
            sibling("mmproj-One.gguf", 5),
            sibling("Big-00002-of-00002.gguf", 700),
            sibling("Big-00001-of-00002.gguf", 800),
            sibling("Half-00001-of-00002.gguf", 1),
        ],
    }
    small, large, split = HubSearch(server.address).offers("org/One")
    assert [small.name, large.name, split.name] == ["One-Q4_0", "One-Q8_0", "Big"]
    assert (small.size_bytes, split.size_bytes) == (500, 1500)
    assert [file.file_name for file in split.files] == [
        "Big-00001-of-00002.gguf",
        "Big-00002-of-00002.gguf",
    ]
    (file,) = small.files
    assert file.url == f"{server.address}/org/One/resolve/{SHA}/sub/One-Q4_0.gguf"
    assert (file.file_name, file.sha256) == ("One-Q4_0.gguf", "b" * 64)
    assert (small.license, small.source) == ("mit", "org/One")


def test_a_hub_that_does_not_know_it_says_so(server: FileServer) -> None:
    with pytest.raises(FetchUnavailable, match="the hub did not answer"):
        HubSearch(server.address).offers("org/none")


def test_an_address_becomes_a_download() -> None:
    offer = offer_of_address(" https://huggingface.co/o/m/blob/main/My%20Model.Q4_0.gguf ")
    assert offer.name == "My Model.Q4_0"
    (file,) = offer.files
    assert file.url == "https://huggingface.co/o/m/resolve/main/My%20Model.Q4_0.gguf"
    assert file.file_name == "My Model.Q4_0.gguf"
    assert (file.size_bytes, file.sha256) == (None, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no web address"),
        ("file:///etc/x.gguf", "no web address"),
        ("ftp://a/x.gguf", "no web address"),
        ("https://a.example/", "does not end in .gguf"),
        ("https://a.example/x.bin", "does not end in .gguf"),
        ("https://me:secret@a.example/x.gguf", "password"),
        ("https://a.example/x-00001-of-00003.gguf", "one part of a split model"),
    ],
)
def test_what_is_no_address_of_a_model_is_refused(text: str, words: str) -> None:
    with pytest.raises(LibraryError, match=words):
        offer_of_address(text)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a/b.gguf", "b.gguf"),
        ("..\\..\\b.gguf", "b.gguf"),
        (".hidden.gguf", "hidden.gguf"),
        ("a:b|c?.gguf", "a_b_c_.gguf"),
        ("x" * 300, "x" * 200),
    ],
)
def test_names_of_files_are_harmless(path: str, name: str) -> None:
    assert safe_file_name(path) == name
