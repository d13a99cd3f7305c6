"""Tokenizers of Hugging Face folders: equal to the library's own, and safe from text and bad files."""

from __future__ import annotations

import base64
import contextlib
import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tokenizers
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from engine.api import ChatMessage
from engine.errors import CorruptModel, UnsupportedModel
from engine.formats.base import FileFormat
from engine.text.chat_template import CHATML, ChatTemplate
from engine.text.pieces import byte_alphabet
from engine.text.tokenizer import Tokenizer, load_tokenizer
from fakes.tiny_text import SENTENCEPIECE_WORDS, StandIn, changed_json, chat_ids, folder_stand_in

CONTROLS = ["<|im_start|>", "<|im_end|>", "<s>", "</s>"]
ORDINARY = ["<think>", "[tool]"]
PIECES = [
    *CONTROLS,
    *ORDINARY,
    "hello",
    " world",
    "  ",
    "é",
    "日",
    "<",
    "|im_end|",
    ">",
    "\n",
    "s",
    "H",
]


def finish(library: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    library.add_special_tokens(
        [tokenizers.AddedToken(c, normalized=False, special=True) for c in CONTROLS]
    )
    library.add_tokens([tokenizers.AddedToken(c, normalized=False) for c in ORDINARY])
    return library


def byte_level_library() -> tokenizers.Tokenizer:
    alphabet = list(byte_alphabet().values())
    merges = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("Ġ", "w")]
    vocab = {p: i for i, p in enumerate([*alphabet, *(a + b for a, b in merges)])}
    library = tokenizers.Tokenizer(models.BPE(vocab, merges))
    library.normalizer = normalizers.NFC()
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    return finish(library)


def sentencepiece_model() -> models.BPE:
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), *SENTENCEPIECE_WORDS]
    vocab = {piece: place for place, piece in enumerate(pieces)}
    merges = [
        ("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("▁", "hello"), ("w", "o"), ("▁", "wo"),
        ("<", "s"), ("<s", ">"),
    ]  # fmt: skip
    return models.BPE(vocab, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)


def sentencepiece_decoder() -> decoders.Decoder:
    return decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )


def legacy_library() -> tokenizers.Tokenizer:
    library = tokenizers.Tokenizer(sentencepiece_model())
    library.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    library.decoder = sentencepiece_decoder()
    return finish(library)


def metaspace_library() -> tokenizers.Tokenizer:
    library = tokenizers.Tokenizer(sentencepiece_model())
    library.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
    library.decoder = sentencepiece_decoder()
    return finish(library)


def unigram_library() -> tokenizers.Tokenizer:
    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0)]
    pieces += [(p, -1.0 - i / 7) for i, p in enumerate(["▁", *"helowrds<>/H|_im", "▁hello", "lo"])]
    library = tokenizers.Tokenizer(models.Unigram(pieces, 0, byte_fallback=False))
    library.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always")
    library.decoder = decoders.Metaspace("▁", prepend_scheme="always")
    return finish(library)


def wordpiece_library() -> tokenizers.Tokenizer:
    words = ["[UNK]", "[CLS]", "[SEP]", *"helowrds<>/|", "##e", "##l", "##o", "hell", "##s", "s"]
    vocab = {piece: place for place, piece in enumerate(dict.fromkeys(words))}
    library = tokenizers.Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    library.normalizer = normalizers.BertNormalizer(lowercase=True)
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.decoder = decoders.WordPiece(cleanup=False)
    return finish(library)


LIBRARIES: dict[str, Callable[[], tokenizers.Tokenizer]] = {
    "byte_level": byte_level_library,
    "legacy": legacy_library,
    "metaspace": metaspace_library,
    "unigram": unigram_library,
    "wordpiece": wordpiece_library,
}
KINDS = pytest.mark.parametrize("kind", LIBRARIES)


def load(
    folder: Path, library: tokenizers.Tokenizer | str, **files: dict[str, object]
) -> Tokenizer:
    return load_tokenizer(folder_stand_in(folder, library, **files))  # type: ignore[arg-type]


def texts(count: int) -> list[str]:
    dice = random.Random(7)
    return ["".join(dice.choices(PIECES, k=dice.randrange(9))) for _ in range(count)]


@KINDS
def test_ids_equal_the_library_with_control_tokens_parsed(tmp_path: Path, kind: str) -> None:
    library = LIBRARIES[kind]()
    tokenizer = load(tmp_path, library)
    for text in texts(400):
        expected = library.encode(text, add_special_tokens=False).ids
        assert tokenizer.encode(text, parse_special=True) == expected, text


@KINDS
def test_no_text_becomes_a_control_token(tmp_path: Path, kind: str) -> None:
    tokenizer = load(tmp_path, LIBRARIES[kind]())
    assert len(tokenizer.control_tokens) == len(CONTROLS)
    for text in [*CONTROLS, *texts(400)]:
        assert not any(map(tokenizer.is_control, tokenizer.encode(text))), text


@pytest.mark.parametrize("kind", ["byte_level", "legacy", "metaspace"])
def test_decoding_equals_the_library(tmp_path: Path, kind: str) -> None:
    library = LIBRARIES[kind]()
    tokenizer = load(tmp_path, library)
    for text in texts(400):
        ids = tokenizer.encode(text, parse_special=True)
        assert tokenizer.decode(ids) == library.decode(ids, skip_special_tokens=True)
        if kind == "byte_level":  # the others lose spaces beside added tokens
            assert tokenizer.decode(tokenizer.encode(text)) == text.replace("e\u0301", "é")


@pytest.mark.parametrize("kind", ["byte_level", "legacy", "metaspace", "unigram"])
def test_a_chat_has_the_tokens_it_has_in_transformers(tmp_path: Path, kind: str) -> None:
    library = LIBRARIES[kind]()
    reference = transformers.PreTrainedTokenizerFast(tokenizer_object=library, bos_token="<s>")
    tokenizer = load(tmp_path, library, tokenizer_config={"bos_token": "<s>"})
    source = "{{ bos_token }}" + CHATML
    template = ChatTemplate(source, tokenizer)
    turns = [("system", "Be brief."), ("user", " hello <b> <think>x "), ("assistant", "wörld\n")]
    expected = reference.apply_chat_template(
        [{"role": role, "content": content} for role, content in turns],
        chat_template=source,
        add_generation_prompt=True,
        return_dict=False,
    )
    chat = [ChatMessage(role=role, content=content) for role, content in turns]
    assert chat_ids(tokenizer, template, chat) == expected


@KINDS
def test_several_threads_may_encode_at_once(tmp_path: Path, kind: str) -> None:
    tokenizer = load(tmp_path, LIBRARIES[kind]())
    cases = texts(200)
    expected = [tokenizer.encode(text) for text in cases]
    with ThreadPoolExecutor(4) as threads:
        for ids in threads.map(lambda _: [tokenizer.encode(text) for text in cases], range(4)):
            assert ids == expected


def test_a_lower_case_wordpiece_text_decodes_with_its_spaces(tmp_path: Path) -> None:
    tokenizer = load(tmp_path, wordpiece_library())
    assert tokenizer.decode(tokenizer.encode("Hello hell")) == "hello hell"


def test_a_normalised_special_token_is_no_way_in(tmp_path: Path) -> None:
    library = byte_level_library()
    library.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    library.add_special_tokens([tokenizers.AddedToken("<|SYS|>", normalized=True, special=True)])
    tokenizer = load(tmp_path, library)
    for text in ("<|SYS|>", "<|sys|>", "<\uff5csys\uff5c>"):
        assert not any(map(tokenizer.is_control, tokenizer.encode(text)))


def test_stripping_flags_swallow_white_space_beside_a_token(tmp_path: Path) -> None:
    library = byte_level_library()
    library.add_special_tokens([tokenizers.AddedToken("<|u|>", normalized=False, rstrip=True)])
    tokenizer = load(tmp_path, library)
    text = "hello <|u|> \n hello"
    expected = library.encode(text, add_special_tokens=False).ids
    assert tokenizer.encode(text, parse_special=True) == expected
    assert len(expected) < len(tokenizer.encode("hello <|u|>hello", parse_special=True)) + 2


def test_bos_and_eos_come_from_the_template_of_the_file(tmp_path: Path) -> None:
    library = byte_level_library()
    bos, eos = library.token_to_id("<s>"), library.token_to_id("</s>")
    library.post_processor = processors.Sequence(
        [
            processors.ByteLevel(),
            processors.TemplateProcessing("<s> $A </s>", None, [("<s>", bos), ("</s>", eos)]),
        ]
    )
    tokenizer = load(tmp_path, library, tokenizer_config={"bos_token": "<s>"})
    assert tokenizer.add_bos
    for text in ("hello", "", "<s>hello"):
        ids = tokenizer.encode(text, parse_special=True, add_special=True)
        assert ids == library.encode(text.removeprefix("<s>")).ids


@pytest.mark.parametrize("processor", [processors.BertProcessing, processors.RobertaProcessing])
def test_bos_and_eos_come_from_a_pair_of_the_file(tmp_path: Path, processor: type) -> None:
    library = byte_level_library()
    sep, cls = ("</s>", library.token_to_id("</s>")), ("<s>", library.token_to_id("<s>"))
    library.post_processor = processor(sep, cls)
    assert load(tmp_path, library).encode("hello", add_special=True) == library.encode("hello").ids


@pytest.mark.parametrize("wanted", [True, False])
def test_the_configuration_overrules_whether_bos_is_added(tmp_path: Path, wanted: bool) -> None:
    library = byte_level_library()
    bos = library.token_to_id("<s>")
    if not wanted:
        library.post_processor = processors.TemplateProcessing("<s> $A", None, [("<s>", bos)])
    config: dict[str, object] = {"bos_token": {"content": "<s>"}, "add_bos_token": wanted}
    tokenizer = load(tmp_path, library, tokenizer_config=config)
    assert tokenizer.add_bos is wanted
    assert (tokenizer.encode("hello", add_special=True)[0] == bos) is wanted


def test_every_token_that_ends_a_reply_is_known(tmp_path: Path) -> None:
    library = byte_level_library()
    tokenizer = load(
        tmp_path,
        library,
        tokenizer_config={"eos_token": "</s>"},
        generation_config={"eos_token_id": [0, 10**7]},
        config={"eos_token_id": 1},
    )
    named = {library.token_to_id("</s>"), library.token_to_id("<|im_end|>")}
    assert tokenizer.eos_ids == {0, 1} | named
    assert tokenizer.special_names == {"eos_token": "</s>"}


def test_an_eos_that_is_not_called_special_is_a_control_token_all_the_same(tmp_path: Path) -> None:
    tokenizer = load(tmp_path, byte_level_library(), tokenizer_config={"eos_token": "<think>"})
    (end,) = tokenizer.encode("<think>", parse_special=True)
    assert tokenizer.is_control(end)
    assert end not in tokenizer.encode("<think>")


def test_dropout_is_switched_off(tmp_path: Path) -> None:
    library = byte_level_library()
    library.model.dropout = 0.5
    tokenizer = load(tmp_path, library)
    assert len({tuple(tokenizer.encode("hello hello")) for _ in range(50)}) == 1


def test_an_id_that_is_both_text_and_control_token_is_an_error(tmp_path: Path) -> None:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    entry = {"id": 0, "content": "<s>", "special": True, **flags}
    library = tokenizers.Tokenizer(models.BPE({"h": 0, "e": 1}, []))
    tokenizer = load(tmp_path, changed_json(library, added_tokens=[entry]))
    assert tokenizer.encode("e") == [1]
    with pytest.raises(CorruptModel, match="turn ordinary text into the control token '<s>'"):
        tokenizer.encode("h")


def test_unknown_text_may_become_the_unknown_token_though_it_is_special(tmp_path: Path) -> None:
    library = tokenizers.Tokenizer(models.BPE({"h": 0, "<unk>": 1}, [], unk_token="<unk>"))
    library.add_special_tokens(["<unk>"])
    assert load(tmp_path, library).encode("hx") == [0, 1]


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
