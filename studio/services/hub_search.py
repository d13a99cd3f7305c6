"""Looks for models on the Hugging Face Hub, and on an address: only when asked, and without any token.

Blocking, in a worker thread. huggingface_hub and httpx take half a second to import: done with the first search.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from studio.models.downloads import Offer, RemoteFile
from studio.models.errors import FetchUnavailable, LibraryError
from studio.services.network_faults import network_fault

_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)
_SAFE_NAME = re.compile(r"[^\w.+()\[\] -]")
_MOST_FOUND = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class HubModel:
    """One repository with GGUF files."""

    repository: str
    downloads: int
    license: str


class HubSearch:
    """`endpoint` None: the hub's own address."""

    def __init__(self, endpoint: str | None = None) -> None:
        self._endpoint = endpoint

    def search(self, text: str) -> tuple[HubModel, ...]:
        """The most downloaded repositories with GGUF files that fit. Raises FetchUnavailable."""
        from httpx import HTTPError
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError

        api = HfApi(endpoint=self._endpoint, token=False)
        try:
            found = api.list_models(
                search=text.strip() or None, filter="gguf", sort="downloads", limit=_MOST_FOUND
            )
            return tuple(
                HubModel(
                    repository=model.id,
                    downloads=model.downloads or 0,
                    license=_license_of(model.tags or ()),
                )
                for model in found
            )
        except (HfHubHTTPError, HTTPError, OSError, ValueError) as error:
            raise FetchUnavailable(f"the hub did not answer: {network_fault(error)}") from error

    def offers(self, repository: str) -> tuple[Offer, ...]:
        """Every GGUF model of a repository, with sizes and checksums, the smallest first. Raises FetchUnavailable."""
        from httpx import HTTPError
        from huggingface_hub import HfApi, hf_hub_url
        from huggingface_hub.errors import HfHubHTTPError

        api = HfApi(endpoint=self._endpoint, token=False)
        try:
            info = api.model_info(repository, files_metadata=True)
        except (HfHubHTTPError, HTTPError, OSError, ValueError) as error:
            raise FetchUnavailable(f"the hub did not answer: {network_fault(error)}") from error
        files = [
            RemoteFile(
                url=hf_hub_url(
                    repository, each.rfilename, revision=info.sha, endpoint=self._endpoint
                ),
                file_name=safe_file_name(each.rfilename),
                size_bytes=each.size,
                sha256=each.lfs.sha256 if each.lfs is not None else None,
            )
            for each in info.siblings or ()
            if each.rfilename.lower().endswith(".gguf") and "mmproj" not in each.rfilename.lower()
        ]
        return _as_offers(files, repository, _license_of(info.tags or ()))


def offer_of_address(text: str) -> Offer:
    """What an address offers, as far as it tells by itself. Raises LibraryError for one that is no GGUF file's."""
    address = text.strip()
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise LibraryError("that is no web address; give one that begins with https://")
    if parts.username or parts.password:
        raise LibraryError(
            "the address has a password in it, which would be kept; give one without"
        )
    name = safe_file_name(unquote(parts.path))
    if not name.lower().endswith(".gguf"):
        raise LibraryError("the address does not end in .gguf; give that of the file itself")
    shard = _SHARD.fullmatch(name)
    if shard is not None and int(shard["count"]) > 1:
        raise LibraryError(
            "that is one part of a split model; download such a model from the hub, or its parts in a browser"
        )
    if parts.hostname == "huggingface.co":
        address = address.replace("/blob/", "/resolve/", 1)
    return Offer(
        name=name[: -len(".gguf")],
        files=(RemoteFile(url=address, file_name=name),),
        source=parts.hostname,
    )


def safe_file_name(path: str) -> str:
    """The last part of a path as a file name that is allowed everywhere and not hidden."""
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    return _SAFE_NAME.sub("_", name).lstrip(". ")[:200]


def _as_offers(files: Iterable[RemoteFile], source: str, license_: str) -> tuple[Offer, ...]:
    """One for each model: the parts of a split one go together, and one that lacks parts is left out."""
    models: defaultdict[str, list[RemoteFile]] = defaultdict(list)
    counts: dict[str, int] = {}
    for file in files:
        shard = _SHARD.fullmatch(file.file_name)
        name = shard["stem"] if shard is not None else file.file_name[: -len(".gguf")]
        models[name].append(file)
        counts[name] = int(shard["count"]) if shard is not None else 1
    offers = [
        Offer(
            name=name,
            files=tuple(sorted(parts, key=lambda file: file.file_name)),
            source=source,
            license=license_,
        )
        for name, parts in models.items()
        if len(parts) == counts[name]
    ]
    return tuple(sorted(offers, key=lambda offer: (offer.size_bytes or 0, offer.name)))


def _license_of(tags: Iterable[str]) -> str:
    return next((tag.removeprefix("license:") for tag in tags if tag.startswith("license:")), "")
