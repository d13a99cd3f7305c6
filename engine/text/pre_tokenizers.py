"""How byte-level models cut a text into words before merging: one list of patterns per name.

The names are those of `tokenizer.ggml.pre`. Each pattern cuts what the ones before it left, matches
and gaps alike becoming words. No torch.
Source of the patterns: the `pre_tokenizer` of each model's own tokenizer.json; which name stands for
which model: llama.cpp's conversion scripts.
"""

# ruff: noqa: RUF001 - patterns for all scripts have characters that look like Latin ones

from __future__ import annotations

from dataclasses import dataclass

from tokenizers import Regex, pre_tokenizers

_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_SYMBOLS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_LLAMA3 = rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1,3}}|{_SYMBOLS}|{_SPACES}"
_QWEN2 = rf"{_CONTRACTION}|{_WORD}|\p{{N}}|{_SYMBOLS}|{_SPACES}"
_QWEN35 = (
    rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}"
)
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_BEFORE = r"[^\r\n\p{L}\p{N}]?"
_TEKKEN = (
    rf"{_BEFORE}{_UPPER}*{_LOWER}+|{_BEFORE}{_UPPER}+{_LOWER}*"
    rf"|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
)
_GPT4O = (
    rf"{_BEFORE}{_UPPER}*{_LOWER}+{_CONTRACTION}?|{_BEFORE}{_UPPER}+{_LOWER}*{_CONTRACTION}?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
)
_DEEPSEEK3 = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}"
)
_DEEPSEEK_LETTERS = (
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕ"
    r"ἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳ"
    r"Ꙁ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
)
_BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"
_DIGIT_GROUPS = r"\d{1,3}(?=(?:\d{3})*\b)"


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """What a name of `tokenizer.ggml.pre` stands for."""

    patterns: tuple[str, ...]
    ignore_merges: bool = False
    """A word that is in the vocabulary is one token, whatever the merges make of it."""
    add_bos: bool = False
    """Whether a prompt begins with BOS where the file does not say."""

    def build(self) -> pre_tokenizers.PreTokenizer:
        """The patterns, then bytes as characters."""
        cuts = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in self.patterns]
        to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        return pre_tokenizers.Sequence([*cuts, to_bytes])


_DEEPSEEK_PUNCTUATION = "\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+"
_HAN_AND_HANGUL = "[一-龥ࠀ-一가-퟿]+"
_HAN_AND_KANA = "[一-龥\u3040-ゟ゠-ヿ]+"
_SEED = rf"{_CONTRACTION}|{_WORD}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_SPACES}"
_BAILING = rf"{_CONTRACTION}|{_WORD}|\p{{N}}|{_SYMBOLS}|\s*[\r\n]|\s+(?!\S)|\s+"
_MINICPM = rf"{_CONTRACTION}|{_WORD}|\p{{N}}+|{_SYMBOLS}|{_SPACES}"

_FAMILIES: dict[PreTokenizer, str] = {
    PreTokenizer(
        (r"[\p{P}$+<=>^~|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]"),
    ): "default",
    PreTokenizer((_GPT2,)): (
        "gpt-2 phi-2 mpt olmo jais gigachat a.x-4.0 mellum modern-bert exaone4 trillion "
        "granite-docling jina-es jina-de jina-v1-en jina-v2-es jina-v2-de jina-v2-code roberta-bpe"
    ),
    PreTokenizer((r"\p{N}", _GPT2)): (
        "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2"
    ),
    PreTokenizer((r"[\p{P}$+<=>^~|`]+", _GPT2, "[0-9][0-9][0-9]")): "falcon",
    PreTokenizer((_LLAMA3,), ignore_merges=True, add_bos=True): (
        "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano"
    ),
    PreTokenizer((_LLAMA3,)): "dbrx smaug-bpe glm4 chatglm-bpe",
    PreTokenizer((_QWEN2,)): (
        "qwen2 stablelm2 deepseek-r1-qwen megrez hunyuan solar-open grok-2 kormo f2llmv2"
    ),
    PreTokenizer((_QWEN35,)): "qwen35",
    PreTokenizer(
        (r"[\r\n]", _DEEPSEEK_LETTERS, _DEEPSEEK_PUNCTUATION, r"\s+$", _HAN_AND_HANGUL, r"\p{N}+")
    ): "deepseek-llm",
    PreTokenizer((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _HAN_AND_HANGUL, r"\p{N}")): (
        "deepseek-coder"
    ),
    PreTokenizer((r"\p{N}{1,3}", _HAN_AND_KANA, _DEEPSEEK3)): (
        "deepseek-v3 hunyuan-dense joyai-llm hy_v4"
    ),
    PreTokenizer((_TEKKEN,), ignore_merges=True, add_bos=True): "tekken",
    PreTokenizer((_GPT4O,)): "gpt-4o llama4 kanana2 minimax-m2 talkie",
    PreTokenizer((_DIGIT_GROUPS, _GPT4O)): "tiny_aya cohere2moe",
    PreTokenizer((_BLOOM,)): "bloom poro-chat gpt3-finnish",
    PreTokenizer((_BLOOM, r"\p{N}")): "viking",
    PreTokenizer((_BAILING,)): "bailingmoe bailingmoe2 llada-moe",
    PreTokenizer((_SEED,)): "seed-coder",
    PreTokenizer((r"\p{N}{1,3}", _MINICPM), ignore_merges=True): "minicpm5",
    PreTokenizer((r"[^\n]+|\n+", _QWEN2)): "laguna",
}

PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    name: family for family, names in _FAMILIES.items() for name in names.split()
}
"""Every known name."""
