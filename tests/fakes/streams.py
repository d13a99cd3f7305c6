"""A streamed text completion as a program hears it: what was said, when, and in which lines."""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

LEGAL_LINE = re.compile(
    r"|: ?(|(preempted|resumed|recomputed)( \d+)?|preempt-keepalive)|data: \S.*"
)
MOST_SILENCE_S = 2.2
"""What a client may rely on, a parked one too."""

_TIMEOUT_S = 60.0
"""For a single read: far beyond the silence that a healthy server keeps."""


@dataclass(slots=True)
class Choice:
    """One reply."""

    text: str = ""
    logprobs: list[float] = field(default_factory=list)
    """Of each token, where they were asked for: they differ before a text does."""
    reason: str | None = None


@dataclass(slots=True)
class Heard:
    """A stream as it came."""

    choices: dict[int, Choice] = field(default_factory=lambda: defaultdict(Choice))
    lines: list[str] = field(default_factory=list)
    longest_silence_s: float = 0.0
    """Between any two signs of life, from the sending of the request on: headers, texts, comments."""
    silence_ended_with: str = ""
    """The line that broke the longest silence."""
    record: dict[str, int] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    has_left: bool = False
    """The listener hung up before the end."""

    @property
    def text(self) -> str:
        return self.choices[0].text

    @property
    def notices(self) -> list[str]:
        return [line for line in self.lines if re.match(": (preempted|resumed)", line)]

    @property
    def has_legal_lines_only(self) -> bool:
        return all(LEGAL_LINE.fullmatch(line) for line in self.lines)

    @property
    def has_paired_notices(self) -> bool:
        """Each choice is parked and resumed in turn, as often as the record of the reply says."""
        by_mark = defaultdict[str, list[str]](list)
        for notice in self.notices:
            word, *mark = notice.removeprefix(": ").split()
            by_mark["".join(mark)].append(word)
        pairs = [
            ["preempted", "resumed"] * (len(words) // 2) == words for words in by_mark.values()
        ]
        return all(pairs) and len(self.notices) == 2 * self.record["parks"]

    def hear(self, line: str) -> None:
        self.lines.append(line)
        if line.startswith("data: {"):
            chunk = json.loads(line.removeprefix("data: "))
            self.error = chunk.get("error", self.error)
            self.record = chunk.get("preempt", self.record)
            self.usage = chunk.get("usage", self.usage)
            for wire in chunk.get("choices", ()):
                choice = self.choices[wire["index"]]
                choice.text += wire["text"]
                choice.logprobs += (wire["logprobs"] or {}).get("token_logprobs", ())
                choice.reason = wire["finish_reason"] or choice.reason


def body_of(prompt: str, *, max_tokens: int = 80, **fields: object) -> dict[str, object]:
    """A request for a stream of exactly so many tokens, at temperature 0 unless told otherwise."""
    return {
        "prompt": prompt,
        "temperature": 0,
        "max_tokens": max_tokens,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
        **fields,
    }


def _stays(_: Heard) -> bool:
    return False


def listen(
    address: str, body: dict[str, object], *, leaves: Callable[[Heard], bool] = _stays
) -> Heard:
    """Ask for a completion and hear it to the end, or hang up once `leaves` says so."""
    heard = Heard()
    last_s = time.monotonic()

    def note_life(sign: str) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if now_s - last_s > heard.longest_silence_s:
            heard.longest_silence_s, heard.silence_ended_with = now_s - last_s, sign
        last_s = now_s

    with (
        httpx.Client(base_url=address, timeout=_TIMEOUT_S, verify=False) as client,
        client.stream("POST", "/v1/completions", json=body) as answer,
    ):
        note_life("headers")
        if answer.status_code != 200:
            heard.error = json.loads(answer.read())["error"]
        for line in answer.iter_lines():
            note_life(line)
            heard.hear(line)
            if leaves(heard):
                heard.has_left = True
                break
    return heard
