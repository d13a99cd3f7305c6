"""Tokenizer files that are damaged, hostile or of another kind give one clear error, and never anything else."""

from __future__ import annotations

import base64
import contextlib
import json
import random
from pathlib import Path

import pytest
from tokenizers import processors

from engine.errors import CorruptModel, UnsupportedModel
from engine.formats.base import FileFormat
from engine.text.tokenizer import load_tokenizer
from fakes.folder_tokenizers import (
    LIBRARIES,
    byte_level_library,
    load,
)
from fakes.tiny_text import StandIn, changed_json


def test_a_folder_without_the_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match=r"no tokenizer\.json; .*save_pretrained"):
        load_tokenizer(StandIn({}, path=tmp_path, format=FileFormat.SAFETENSORS))


def bad_files() -> dict[str, str]:
    library = byte_level_library()
    model = json.loads(library.to_str())["model"]
    charsmap = base64.b64encode(b"\xff" * 50).decode()
    false_size = base64.b64encode(b"\0\0\0\x7f" + b"\0" * 40).decode()
    long_map = base64.b64encode(b"\0\0\0\0" + b"y" * 999 + b"\0").decode()
    doubling = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    split = {"type": "Split", "behavior": "Isolated", "invert": False}
    deep: object = {"type": "NFC"}
    for _ in range(150):
        deep = {"type": "Sequence", "normalizers": [deep]}
    return {
        "empty": "",
        "no object": "[]",
        "cut off": library.to_str()[:1000],
        "not utf-8 json": "{\ud83d".encode("utf-8", "ignore").decode(),
        "nested": "[" * 100_000,
        "no model": changed_json(library, model=None),
        "no vocab": changed_json(library, model={"type": "BPE"}),
        "vocab of texts": changed_json(library, model={**model, "vocab": {"a": "b"}}),
        "negative id": changed_json(library, model={**model, "vocab": {"a": -1}, "merges": []}),
        "huge id": changed_json(library, model={**model, "vocab": {"a": 10**12}, "merges": []}),
        "empty vocab": changed_json(library, model={**model, "vocab": {}, "merges": []}, added_tokens=[]),
        "odd merges": changed_json(library, model={**model, "merges": [["a"]]}),
        "unknown merge": changed_json(library, model={**model, "merges": [["zz", "yy"]]}),
        "unknown type": changed_json(library, model={**model, "type": "Magic"}),
        "odd added token": changed_json(library, added_tokens=[5]),
        "added without id": changed_json(library, added_tokens=[{"content": "x"}]),
        "unigram of numbers": changed_json(library, model={"type": "Unigram", "vocab": [[1, 2]]}),
        "unigram unknown": changed_json(library, model={"type": "Unigram", "unk_id": 9, "vocab": [["a", 0]]}),
        "odd normalizer": changed_json(library, normalizer={"type": "Magic"}),
        "deep normalizer": changed_json(library, normalizer=deep),
        "growing": changed_json(library, normalizer={"type": "Sequence", "normalizers": [doubling] * 40}),
        "charsmap": changed_json(library, normalizer={"type": "Precompiled", "precompiled_charsmap": charsmap}),
        "long charsmap": changed_json(library, normalizer={"type": "Precompiled", "precompiled_charsmap": long_map}),
        "false charsmap": changed_json(library, normalizer={"type": "Precompiled", "precompiled_charsmap": false_size}),
        "odd charsmap": changed_json(library, normalizer={"type": "Precompiled", "precompiled_charsmap": [1]}),
        "long unknown": changed_json(library, model={**model, "unk_token": "u" * 10**5}),
        "odd template": changed_json(library, post_processor={"type": "TemplateProcessing", "single": [5]}),
        "odd pair": changed_json(library, post_processor={"type": "BertProcessing", "cls": 5}),
        "bad regex": changed_json(library, pre_tokenizer={**split, "pattern": {"Regex": "("}}),
        "odd decoder": changed_json(library, decoder={"type": "CTC"}),
        "surrogate": '{"model":{"type":"BPE","vocab":{"\\ud800":0},"merges":[]}}',
    }  # fmt: skip


@pytest.mark.parametrize("name", bad_files())
def test_a_bad_file_gives_one_clear_error(tmp_path: Path, name: str) -> None:
    with pytest.raises((CorruptModel, UnsupportedModel), match=r"tokenizer\.json"):
        load(tmp_path, bad_files()[name])


def test_bad_configuration_files_are_named(tmp_path: Path) -> None:
    library = byte_level_library()
    with pytest.raises(CorruptModel, match="bos_token must be text"):
        load(tmp_path, library, tokenizer_config={"bos_token": 5})
    with pytest.raises(CorruptModel, match=r"generation_config\.json: eos_token_id"):
        load(tmp_path, library, generation_config={"eos_token_id": ["x"]})


def test_random_damage_gives_a_tokenizer_or_our_error(tmp_path: Path) -> None:
    sources = [library().to_str() for library in LIBRARIES.values()]
    dice = random.Random(3)
    for _ in range(1000):
        data = bytearray(dice.choice(sources).encode())
        for _ in range(dice.randrange(1, 4)):
            data[dice.randrange(len(data))] = dice.randrange(32, 127)
        with contextlib.suppress(CorruptModel, UnsupportedModel):
            load(tmp_path, data.decode("utf-8", "replace")).encode("hello <s> wörld")


def nodes_of(value: object) -> list[tuple[dict | list, object]]:
    """Every place in a JSON value, as its container and key."""
    places: list[tuple[dict | list, object]] = []
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            places.append((value, key))
            places += nodes_of(value[key])  # type: ignore[index]
    return places


def test_a_value_of_the_wrong_kind_anywhere_gives_a_tokenizer_or_our_error(tmp_path: Path) -> None:
    odd = [
        None,
        5,
        -1,
        10**15,
        1.5,
        "",
        "x",
        "\ud800",
        True,
        [],
        {},
        [[]],
        ["x"],
        {"type": ["x"]},
        "y" * 3000,
    ]
    dice = random.Random(9)
    for library in LIBRARIES.values():
        source = library()
        source.post_processor = processors.TemplateProcessing("<s> $A", None, [("<s>", 1)])
        text = source.to_str()
        for _ in range(400):
            data = json.loads(text)
            top = dice.choice([key for key in data if isinstance(data[key], dict | list)])
            container, key = dice.choice([(data, top), *nodes_of(data[top])])
            container[key] = dice.choice(odd)  # type: ignore[call-overload, index]
            with contextlib.suppress(CorruptModel, UnsupportedModel):
                tokenizer = load(tmp_path, json.dumps(data), tokenizer_config={"bos_token": "<s>"})
                tokenizer.decode(
                    tokenizer.encode("hello <s> wörld", parse_special=True, add_special=True)
                )


def test_a_pattern_that_never_ends_is_an_error(tmp_path: Path) -> None:
    pattern = {
        "type": "Split",
        "pattern": {"Regex": "(?:a|aa|aaa)*c"},
        "behavior": "Isolated",
        "invert": False,
    }
    tokenizer = load(tmp_path, changed_json(byte_level_library(), pre_tokenizer=pattern))
    with pytest.raises(CorruptModel, match=r"tokenizer\.json"):
        tokenizer.encode("a" * 60 + "b xc")
