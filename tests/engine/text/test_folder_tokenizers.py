"""Tokenizers of Hugging Face folders: equal to the library's own, and safe from text and bad files."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tokenizers
import transformers
from tokenizers import models, normalizers, processors

from engine.api import ChatMessage
from engine.errors import CorruptModel
from engine.text.chat_template import CHATML, ChatTemplate
from fakes.folder_tokenizers import (
    CONTROLS,
    LIBRARIES,
    ORDINARY,
    byte_level_library,
    load,
    wordpiece_library,
)
from fakes.tiny_text import changed_json, chat_ids

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


KINDS = pytest.mark.parametrize("kind", LIBRARIES)


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
