"""Lies in a Hugging Face folder: JSON values, the header of a weight file, which files there are."""

from __future__ import annotations

import json
import struct
from random import Random

from fakes.fuzz.mutate_bytes import NUMBERS, damage

_VALUES: tuple[object, ...] = (
    None, True, False, 0.5, -1, 1e308, float("nan"), float("inf"), 10**300, "", "x", "x" * 70_000, "\ud800", "\0",
    "../../x", "llama", "default", [], {}, [[]], [{}], {"": None}, ["a", 1], "{% for %}",
)  # fmt: skip
_DEEP = 5000
_HOLE = "here comes what json.dumps cannot write"


def lie(random: Random, files: dict[str, bytes]) -> dict[str, bytes]:
    """One to three lies in a sound folder."""
    files = dict(files)
    for _ in range(random.choice((1, 1, 2, 3))):
        choice = random.random()
        name = random.choice(sorted(files)) if files else "config.json"
        if choice < 0.15:
            files[name] = damage(random, files.get(name, b""), 400)
        elif choice < 0.25:
            _move_files(random, files, name)
        elif name.endswith(".safetensors"):
            files[name] = _change_header(random, files[name])
        else:
            files[name] = _change_json(random, files.get(name, b"{}"))
    return files


def _move_files(random: Random, files: dict[str, bytes], name: str) -> None:
    content = files.pop(name, b"")
    other = random.choice((None, "pytorch_model.bin", "chat_template.jinja", "chat_template.json", "model.gguf",
                           "model.safetensors", "model.safetensors.index.json", *files))  # fmt: skip
    if other is not None:
        files[other] = content


def _change_header(random: Random, content: bytes) -> bytes:
    (length,) = struct.unpack_from("<Q", content.ljust(8, b"\0"))
    header, data = content[8 : 8 + length], content[8 + length :]
    header = _change_json(random, header)
    claimed = random.choice(NUMBERS) if random.random() < 0.1 else len(header)
    return struct.pack("<Q", claimed) + header + data


def _change_json(random: Random, content: bytes) -> bytes:
    """Change one value somewhere in the tree; bytes that are no JSON any more are damaged instead."""
    try:
        tree = json.loads(content)
    except (ValueError, RecursionError):
        return damage(random, content, 0)
    parent: dict[str, object] = {"": tree}
    container, place = _pick(random, parent)
    new = _new_value(random, container[place])
    if new is _MISSING:
        del container[place]
    else:
        container[place] = new
    written = json.dumps(parent.get(""), ensure_ascii=random.random() < 0.5)
    brackets = random.choice((("[", "]"), ('{"a":', "}")))
    written = written.replace(f'"{_HOLE}"', brackets[0] * _DEEP + "1" + brackets[1] * _DEEP)
    return written.encode("utf-8", "surrogatepass")


_MISSING = object()


def _pick(random: Random, tree: dict[str, object]) -> tuple[dict | list, str | int]:  # type: ignore[type-arg]
    """A random place in the tree, every level as likely as its parent's siblings."""
    container: dict | list = tree  # type: ignore[type-arg]
    place: str | int = ""
    while True:
        child = container[place]  # type: ignore[index, call-overload]
        if not isinstance(child, dict | list) or not child or random.random() < 0.15:
            return container, place
        container = child
        place = (
            random.choice(list(child)) if isinstance(child, dict) else random.randrange(len(child))
        )


def _new_value(random: Random, old: object) -> object:
    choice = random.random()
    if choice < 0.15:
        return _MISSING
    if choice < 0.18:
        return _HOLE
    if choice < 0.5 and isinstance(old, int | float):
        return random.choice((*NUMBERS, old + 1, -old, old * 2, float(old), str(old)))
    if choice < 0.5 and isinstance(old, str):
        return random.choice((old + "x", old[1:], old * 3, old.upper(), [old], 7))
    if choice < 0.5 and isinstance(old, list) and old:
        return random.choice((old + old, old[1:], old[::-1], old[0], dict.fromkeys(map(str, old))))
    if choice < 0.5 and isinstance(old, dict) and old:
        items = list(old.items())
        return random.choice(
            (dict(items[1:]), {**old, "x": items[0][1]}, list(old.values()), dict(reversed(items)))
        )
    return random.choice((*_VALUES, *NUMBERS))
