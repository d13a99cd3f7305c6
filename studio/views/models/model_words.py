"""Facts, fits and downloads of models in words. Pure functions, GUI thread. Must not import widgets or services."""

from __future__ import annotations

from engine.api import ModelInfo
from engine.errors import ModelError
from studio.models.capacity import USUAL_CHAT_TOKENS
from studio.models.downloads import Download, DownloadState, Offer
from studio.models.model_fit import Fit, Machine, Verdict, largest_model
from studio.models.model_library import ModelEntry, ModelFacts
from studio.views.error_words import as_sentence, detail_words, error_sentence
from studio.views.monitor.history_words import capacity_words
from studio.views.words import count, decimal, elapsed, memory, size, tokens, tr

_LICENSES = {one.lower(): one for one in ("Apache-2.0", "BSD-3-Clause", "MIT")}
"""The hub writes them small, and "mit" is a word in German."""


def facts_words(info: ModelInfo) -> str:
    """ "llama · 135 M parameters · Q4_1 · 98 MB · 8,192 tokens of context · chat template · Apache-2.0"."""
    parts = [
        info.architecture,
        tr("{number} parameters").format(number=parameters_words(info.parameters)),
        info.quantization,
        size(info.size_bytes),
    ]
    if info.context_tokens:
        parts.append(tr("{tokens} tokens of context").format(tokens=count(info.context_tokens)))
    parts.append(tr("chat template") if info.has_chat_template else tr("no chat template"))
    if info.license:
        parts.append(license_words(info.license))
    return " · ".join(parts)


def license_words(name: str) -> str:
    """As SPDX writes it, whichever way the hub or a file does."""
    return _LICENSES.get(name.lower(), name)


def parameters_words(number: int) -> str:
    """94,720, 135 M, 7.6 B."""
    if number >= 1_000_000_000:
        return tr("{figure} B").format(figure=decimal(number / 1e9, 1))
    if number < 1_000_000:
        return count(number)
    return tr("{figure} M").format(figure=count(round(number / 1e6)))


def entry_words(entry: ModelEntry, facts: ModelFacts | None, *, is_loaded: bool) -> str:
    """The second line of a model's row."""
    if entry.is_missing and is_loaded:
        text = tr("Its file {path} is not there any more. It works on until it is unloaded.")
        return text.format(path=entry.path)
    if entry.is_missing:
        return tr("It was at {path}, which is not there now.").format(path=entry.path)
    if facts is None:
        return size(entry.size_bytes)
    if facts.info is None:
        return problem_words(facts)
    return facts_words(facts.info)


def fit_words(fit: Fit) -> str:
    """What it takes against what is free."""
    figures = {
        "weights": memory(fit.weights_bytes),
        "pool": memory(fit.pool_bytes),
        "tokens": count(fit.pool_tokens),
        "free": memory(fit.free_bytes),
    }
    text = tr("Weights {weights} and a pool of {tokens} tokens, {pool}; {free} of memory is free.")
    return text.format(**figures)


def park_words(fit: Fit) -> str:
    """What parked chats may hold beside it."""
    if fit.park_bytes == 0:
        return tr("Nobody is parked: when the pool is full, replies end.")
    if fit.park_bytes < 0:
        return tr("Parked chats hold as much memory as they need.")
    return tr("Parked chats hold up to {size} beside it, only while they are parked.").format(
        size=memory(fit.park_bytes)
    )


def verdict_words(fit: Fit) -> str:
    """The headline of a fit."""
    match fit.verdict:
        case Verdict.FITS:
            return tr("Fits")
        case Verdict.TIGHT:
            return tr("Fits, and takes nearly all that is free")
        case Verdict.TOO_LARGE:
            missing = memory(fit.needed_bytes - fit.free_bytes)
            return tr("Does not fit: {size} are missing. A smaller pool or model would.").format(
                size=missing
            )
        case Verdict.UNKNOWN:
            return tr("What it takes will be known once it is loaded")


def room_words(fit: Fit) -> str:
    """What a model would do here, in chats: "On this computer: 4 chats of 8,192 tokens at once, one more waits"."""
    match fit.verdict:
        case Verdict.UNKNOWN:
            return ""
        case Verdict.TOO_LARGE:
            return verdict_words(fit)
        case Verdict.FITS | Verdict.TIGHT:
            each = min(fit.window_tokens, fit.pool_tokens // fit.parallel)
            words = tr("{count} chats of {length} at once, one more would wait its turn")
            chats = words.format(count=count(fit.parallel), length=tokens(each))
            if each < USUAL_CHAT_TOKENS or fit.parallel == 1:
                chats = capacity_words(fit.capacity(USUAL_CHAT_TOKENS))
            return tr("On this computer: {chats}").format(chats=chats)


def machine_words(machine: Machine) -> str:
    """What this machine can do, for somebody who has never thought about it."""
    largest = largest_model(machine)
    figure = decimal(largest, 0 if largest >= 2 else 1)
    text = tr(
        "This computer has {memory} of memory and {cores} processor cores: models of up to about {largest} billion "
        "parameters in 4 bits fit; smaller ones answer sooner."
    )
    return text.format(memory=memory(machine.total_bytes), cores=machine.cores, largest=figure)


def offer_words(offer: Offer) -> str:
    """Size, parts and licence of what can be downloaded."""
    total = offer.size_bytes
    parts = [size(total) if total is not None else tr("size unknown")]
    if len(offer.files) > 1:
        parts.append(tr("{number} files").format(number=len(offer.files)))
    if offer.license:
        parts.append(license_words(offer.license))
    has_sum = all(file.sha256 for file in offer.files)
    parts.append(tr("checked by SHA-256") if has_sum else tr("no checksum known"))
    return " · ".join(parts)


def problem_words(facts: ModelFacts) -> str:
    """Why a model cannot be used; empty if it can."""
    return as_sentence(detail_words(facts.problem, ModelError.code))


def download_words(download: Download) -> str:
    """How far it is, or what is wrong."""
    done, total = size(download.done_bytes), download.total_bytes
    amount = tr("{done} of {total}").format(done=done, total=size(total)) if total else done
    match download.state:
        case DownloadState.QUEUED:
            return tr("Waiting for its turn")
        case DownloadState.RUNNING:
            return _running_words(download, amount)
        case DownloadState.WAITING:
            return tr("{amount} · connection lost, tried again by itself").format(amount=amount)
        case DownloadState.CHECKING:
            return tr("Checking that it is the right file")
        case DownloadState.PAUSED:
            return tr("{amount} · paused").format(amount=amount)
        case DownloadState.FAILED:
            return (
                error_sentence(download.error) if download.error is not None else tr("It failed.")
            )
        case DownloadState.DONE:
            return tr("{amount} · in the library").format(amount=done)


def _running_words(download: Download, amount: str) -> str:
    if download.bytes_per_s < 1:
        return tr("{amount} · nothing is coming just now").format(amount=amount)
    speed = tr("{size}/s").format(size=size_fine(download.bytes_per_s))
    left = download.seconds_left
    if left is None:
        return f"{amount} · {speed}"
    return tr("{amount} · {speed} · {time} left").format(
        amount=amount, speed=speed, time=elapsed(left)
    )


def size_fine(num_bytes: float) -> str:
    """Speeds: 850 kB, 4.2 MB, 112 MB."""
    if num_bytes < 1_000_000:
        return tr("{figure} kB").format(figure=count(round(num_bytes / 1e3)))
    return tr("{figure} MB").format(figure=decimal(num_bytes / 1e6, 1 if num_bytes < 9.95e6 else 0))
