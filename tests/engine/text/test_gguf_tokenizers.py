"""GGUF vocabularies: the reference vectors, roles of tokens, and files that contradict themselves."""

from __future__ import annotations

import contextlib
import logging
import random
from array import array
from pathlib import Path

import pytest

from engine.errors import CorruptModel, UnsupportedModel
from engine.formats.checkpoint import open_checkpoint
from engine.text.pre_tokenizers import PRE_TOKENIZERS
from engine.text.tokenizer import Tokenizer, load_tokenizer
from fakes.tiny_text import (
    BYTE,
    CONTROL,
    NORMAL,
    USER_DEFINED,
    StandIn,
    byte_level,
    byte_level_metadata,
    ggml,
    sentencepiece,
    sentencepiece_metadata,
)

VOCABULARIES = [
    "bert-bge", "deepseek-coder", "falcon", "gpt-2", "llama-bpe", "llama-spm", "phi-3", "qwen2", "qwen35",
]  # fmt: skip


def vocabulary(shared_cases: Path, name: str) -> Path:
    return shared_cases / "vocab" / f"ggml-vocab-{name}.gguf"


def load(path: Path) -> Tokenizer:
    checkpoint = open_checkpoint(path)
    try:
        return load_tokenizer(checkpoint)
    finally:
        checkpoint.close()


def vectors(path: Path) -> list[tuple[str, list[int]]]:
    texts = Path(f"{path}.inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
    ids = Path(f"{path}.out").read_text().split("\n")
    return [(text, [int(i) for i in line.split()]) for text, line in zip(texts, ids, strict=True)]


def test_every_reference_vocabulary_is_tested(shared_cases: Path) -> None:
    found = sorted(path.stem for path in (shared_cases / "vocab").glob("*.gguf"))
    assert found == [f"ggml-vocab-{name}" for name in VOCABULARIES]


@pytest.mark.parametrize("name", VOCABULARIES)
def test_tokens_equal_the_reference_vectors(shared_cases: Path, name: str) -> None:
    path = vocabulary(shared_cases, name)
    tokenizer = load(path)
    cases = vectors(path)
    assert len(cases) >= 47
    for text, ids in cases:
        assert tokenizer.encode(text) == ids, repr(text)
        if name != "bert-bge":  # which forgets case and spaces
            assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("name", VOCABULARIES)
def test_control_tokens_come_only_from_parsing_special(shared_cases: Path, name: str) -> None:
    tokenizer = load(vocabulary(shared_cases, name))
    for token in tokenizer.control_tokens:
        ids = tokenizer.encode(f"a{token.content}b")
        assert not any(map(tokenizer.is_control, ids))
        assert token.token_id in tokenizer.encode(f"a{token.content}b", parse_special=True)


def test_a_byte_level_text_merges_and_comes_back() -> None:
    tokenizer = byte_level()
    assert tokenizer.encode("hello") == [256 + 3]
    for text in ("hello wörld\r\n 日本 😀", "", " ", "\0\x7f"):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_sentencepiece_puts_a_space_before_every_stretch_of_text() -> None:
    tokenizer = sentencepiece()
    hello = tokenizer.encode("hello")
    assert [tokenizer.token_bytes(i) for i in hello] == [b" hello"]
    assert tokenizer.encode("hello</s>hello", parse_special=True) == [*hello, 2, *hello]
    assert tokenizer.decode(hello) == "hello"
    assert tokenizer.decode(tokenizer.encode(" hello ü")) == " hello ü"


def test_sentencepiece_without_the_space_rule_leaves_the_text_alone() -> None:
    tokenizer = sentencepiece(add_space_prefix=False)
    assert [tokenizer.token_bytes(i) for i in tokenizer.encode("hello")] == [b"hello"]
    assert tokenizer.decode(tokenizer.encode(" hello")) == " hello"


def test_pieces_that_would_merge_into_a_control_token_do_not() -> None:
    tokenizer = sentencepiece(add_space_prefix=False)
    assert [tokenizer.token_bytes(i) for i in tokenizer.encode("<s>")] == [b"<s", b">"]


def test_a_unigram_vocabulary_takes_the_best_cut() -> None:
    pieces = ["<pad>", "</s>", "<unk>", "▁", "▁a", "b", "ab", "▁ab", "▁<s>"]
    tokenizer = load_tokenizer(
        StandIn(
            ggml(
                model="t5",
                tokens=pieces,
                token_type=[CONTROL, CONTROL, 2] + [NORMAL] * 5 + [USER_DEFINED],
                scores=[0.0, 0.0, 0.0, -2.0, -3.0, -1.0, -1.5, -4.5, 0.0],
                eos_token_id=1,
                remove_extra_whitespaces=True,
            )
        )
    )
    assert tokenizer.encode("ab") == [3, 6]  # -3.5 beats "▁ab" and "▁a" "b"
    assert tokenizer.encode("  ab   b ") == [3, 6, 3, 5]
    assert tokenizer.encode("ab", add_special=True) == [3, 6, 1]
    assert 1 not in tokenizer.encode("</s>")
    assert 2 in tokenizer.encode("z")
    assert tokenizer.decode([3, 6, 3, 5]) == "ab b"


def test_a_wordpiece_vocabulary_frames_its_text() -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁play", "ing", "▁."]
    tokenizer = load_tokenizer(
        StandIn(
            ggml(
                model="bert",
                tokens=pieces,
                token_type=[CONTROL] * 4 + [NORMAL] * 3,
                unknown_token_id=1,
                cls_token_id=2,
                seperator_token_id=3,
            )
        )
    )
    assert tokenizer.encode("Playing. zzz", add_special=True) == [2, 4, 5, 6, 1, 3]
    assert tokenizer.decode([4, 5, 6]) == "playing ."


def test_bos_is_added_once() -> None:
    tokenizer = sentencepiece()
    assert tokenizer.add_bos
    ids = tokenizer.encode("hello", add_special=True)
    assert ids[0] == 1
    assert tokenizer.encode("<s>hello", add_special=True, parse_special=True) == ids
    assert tokenizer.encode("", add_special=True) == [1]


def test_a_file_that_says_no_bos_gets_none() -> None:
    tokenizer = sentencepiece(add_bos_token=False)
    assert not tokenizer.add_bos
    assert tokenizer.encode("hello", add_special=True) == tokenizer.encode("hello")


def test_every_token_that_ends_a_reply_is_known() -> None:
    metadata = byte_level_metadata(
        controls=("<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|stop|>", "<|im_start|>")
    )
    base = len(metadata["tokenizer.ggml.tokens"]) - 5  # type: ignore[arg-type]
    tokenizer = load_tokenizer(StandIn(metadata | ggml(eos_token_id=base + 3)))
    assert tokenizer.eos_ids == {base, base + 1, base + 2, base + 3}


def test_in_harmony_vocabularies_end_does_not_end_the_reply() -> None:
    metadata = byte_level_metadata(controls=("<|return|>", "<|call|>", "<|end|>"))
    base = len(metadata["tokenizer.ggml.tokens"]) - 3  # type: ignore[arg-type]
    assert load_tokenizer(StandIn(metadata)).eos_ids == {base, base + 1}


def test_an_end_token_of_the_wrong_kind_is_a_control_token_all_the_same() -> None:
    tokenizer = byte_level(controls=(), user_defined=("<|im_end|>", "<think>"))
    (end,) = tokenizer.eos_ids
    assert tokenizer.is_control(end)
    assert tokenizer.encode("<|im_end|>", parse_special=True) == [end]
    assert end not in tokenizer.encode("<|im_end|>")


def test_an_eos_that_is_ordinary_text_stays_ordinary() -> None:
    line_feed = list(byte_level_metadata()["tokenizer.ggml.tokens"]).index("Ċ")  # type: ignore[call-overload]
    tokenizer = byte_level(eos_token_id=line_feed)
    assert line_feed in tokenizer.eos_ids
    assert tokenizer.encode("\n") == [line_feed]
    assert tokenizer.token_bytes(line_feed) == b"\n"


def test_user_defined_tokens_are_text_and_always_matched() -> None:
    tokenizer = byte_level(user_defined=("<think>", "日"))
    (think,) = tokenizer.encode("<think>")
    assert not tokenizer.is_control(think)
    assert tokenizer.token_bytes(think) == b"<think>"
    assert tokenizer.decode(tokenizer.encode("日<think>日")) == "日<think>日"


def test_control_tokens_show_only_when_asked_for() -> None:
    tokenizer = byte_level()
    (start,) = tokenizer.encode("<|im_start|>", parse_special=True)
    assert tokenizer.token_bytes(start) == b""
    assert tokenizer.token_bytes(start, show_control=True) == b"<|im_start|>"
    assert tokenizer.token_bytes(tokenizer.vocab_size) == b""
    assert tokenizer.token_bytes(-1) == b""
    assert tokenizer.decode([start, *tokenizer.encode("hello"), start]) == "hello"


def test_halves_of_surrogate_pairs_do_no_harm() -> None:
    tokenizer = byte_level()
    assert tokenizer.decode(tokenizer.encode("a\ud800b\ud83d\ude00")) == "a\ufffdb😀"
    assert tokenizer.encode("\udc00", parse_special=True) == tokenizer.encode("\ufffd")


def test_names_for_templates_come_from_the_file() -> None:
    tokenizer = sentencepiece(padding_token_id=0)
    assert tokenizer.special_names == {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "<unk>",
    }


@pytest.mark.parametrize("name", sorted(PRE_TOKENIZERS))
def test_every_known_way_to_cut_words_works(name: str) -> None:
    tokenizer = byte_level(pre=name, bos_token_id=0)
    text = "Hello WORLD's 12345 日本語 ½ don't\r\n\n  x\t!!! (é́) नमस्ते 🙂"
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_an_unknown_way_to_cut_words_is_named() -> None:
    with pytest.raises(UnsupportedModel, match=r"tokenizer\.ggml\.pre is 'brand-new'"):
        byte_level(pre="brand-new")


def test_a_missing_way_to_cut_words_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    metadata = byte_level_metadata()
    del metadata["tokenizer.ggml.pre"]
    with caplog.at_level(logging.WARNING):
        tokenizer = load_tokenizer(StandIn(metadata))
    assert "tokenizer.ggml.pre is missing" in caplog.text
    assert tokenizer.encode("hello")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tokens", None),
        ("tokens", []),
        ("tokens", "abc"),
        ("tokens", [1, 2]),
        ("tokens", ["a", "b", "a"]),
        ("token_type", [1]),
        ("token_type", ["x"] * 300),
        ("merges", None),
        ("merges", ["ab"]),
        ("merges", ["h zzz"]),
        ("merges", [7]),
        ("bos_token_id", 10**6),
        ("eos_token_id", -1),
        ("eot_token_id", "x"),
        ("add_bos_token", "yes"),
        ("pre", 5),
        ("model", 5),
    ],
)
def test_a_value_that_cannot_be_names_its_key(key: str, value: object) -> None:
    metadata = byte_level_metadata() | ggml(**{key: value})
    if value is None:
        del metadata[f"tokenizer.ggml.{key}"]
    with pytest.raises(CorruptModel, match=f"tokenizer.ggml.{key}"):
        load_tokenizer(StandIn(metadata))


@pytest.mark.parametrize("scores", [[1.0], [float("nan")] * 300, ["x"] * 300, array("B", [1])])
def test_bad_scores_are_named(scores: object) -> None:
    with pytest.raises(CorruptModel, match=r"tokenizer\.ggml\.scores"):
        sentencepiece(scores=scores)


def test_an_unknown_kind_of_vocabulary_is_named() -> None:
    with pytest.raises(UnsupportedModel, match="'rwkv', supported are gpt2, llama, t5 and bert"):
        load_tokenizer(StandIn(ggml(model="rwkv")))


@pytest.mark.parametrize(
    "table",
    [
        b"\xff" * 40,
        b"\0",
        b"\0\0\0\0" + b"x" * 300 + b"\0",
        b"\0\0\0\x7f" + b"\0" * 40,  # the library would ask for two gigabytes and end the process
        b"\x03\0\0\0" + b"\0" * 40,
    ],
)
def test_a_broken_character_map_is_an_error(table: bytes) -> None:
    metadata = sentencepiece_metadata() | ggml(model="t5", unknown_token_id=0)
    with pytest.raises(CorruptModel, match="precompiled_charsmap"):
        load_tokenizer(
            StandIn(
                metadata
                | ggml(precompiled_charsmap=array("b", [b - 256 if b > 127 else b for b in table]))
            )
        )


def test_a_sentencepiece_vocabulary_without_bytes_uses_its_unknown_token() -> None:
    metadata = sentencepiece_metadata()
    kinds = [2 if kind == BYTE else kind for kind in metadata["tokenizer.ggml.token_type"]]  # type: ignore[attr-defined]
    tokenizer = load_tokenizer(StandIn(metadata | ggml(token_type=kinds)))
    assert tokenizer.encode("日本")[-1] == 0


def damaged(dice: random.Random, metadata: dict[str, object]) -> dict[str, object]:
    """One value exchanged, or one entry of an array."""
    key = dice.choice(list(metadata))
    value = metadata[key]
    odd = [
        None,
        0,
        -1,
        10**12,
        1.5,
        float("nan"),
        float("inf"),
        "",
        "x",
        True,
        [],
        ["x"],
        [[]],
        array("B", [1]),
    ]
    odd += [array("f", [1.0] * 300), "▁" * 5000, b"x"]
    if isinstance(value, list) and value and dice.random() < 0.7:
        value = list(value)
        for _ in range(dice.randrange(1, 4)):
            value[dice.randrange(len(value))] = dice.choice([*odd, dice.choice(value)])
        return metadata | {key: value}
    return metadata | {key: dice.choice(odd)}


def test_random_damage_gives_a_tokenizer_or_our_error(caplog: pytest.LogCaptureFixture) -> None:
    sentencepiece_like = sentencepiece_metadata() | ggml(add_bos_token=True, add_space_prefix=True)
    sources = [
        byte_level_metadata() | ggml(bos_token_id=5, eos_token_id=6, add_bos_token=True),
        sentencepiece_like,
        sentencepiece_like | ggml(model="t5", unknown_token_id=0),
        sentencepiece_like | ggml(model="bert", unknown_token_id=0, seperator_token_id=2),
    ]
    dice = random.Random(4)
    loaded = 0
    for _ in range(2000):
        metadata = damaged(dice, dice.choice(sources))
        with contextlib.suppress(CorruptModel, UnsupportedModel):
            tokenizer = load_tokenizer(StandIn(metadata))
            ids = tokenizer.encode("hello <s> wörld", add_special=True, parse_special=True)
            tokenizer.decode(ids)
            loaded += 1
    assert 200 < loaded < 1800
