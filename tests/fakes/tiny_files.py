"""Tiny but whole models on disk, for tests: GGUF files and Hugging Face folders of two layers.

The same seeded `tiny_weights` go into both kinds, so that a test may compare what it gets out of
them. The vocabulary is a byte-level BPE of 256 bytes, some merges and three control tokens, with a
ChatML template.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import gguf
import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from fakes.tiny_model import (
    CONTROL_TOKENS,
    WIDE_SHAPE,
    TinyShape,
    tiny_shape,
    tiny_vocabulary,
    tiny_weights,
)
from fakes.weight_blocks import random_blocks
from kernels.quant import BLOCK_FORMATS

BOS_ID, EOS_ID, UNKNOWN_ID = 1, 2, 0
CONTEXT_TOKENS = 512
ROPE_BASE = 10000.0
NORM_EPSILON = 1e-5
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write_tiny_gguf(
    folder: Path,
    *,
    architecture: str = "llama",
    storage: str = "F32",
    seed: int = 0,
    tied: bool = True,
    tensors_per_shard: int = 0,
    pooling: gguf.PoolingType | None = None,
    controls: tuple[str, ...] = (),
    unused: int = 0,
    template: str = CHAT_TEMPLATE,
) -> Path:
    """Write a GGUF file ("llama", "qwen2", "qwen3") and return its path.

    `storage` holds for the matrices, vectors stay F32. Where its blocks are of 256 values the model is
    a wide one, and where `gguf` cannot quantise to it the codes are random. With `tensors_per_shard`
    it is a split model and the path its first shard's; with `pooling` one that gives embeddings. `controls`
    are control tokens in the places of the last tokens of its vocabulary, and `unused` tokens follow that no
    text becomes. The rows of llama's query and key matrices are reordered for interleaved rotary pairs, as
    converted models have them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"tiny-{architecture}-{storage}.gguf"
    is_wide = BLOCK_FORMATS[storage].block_values > 32
    shape = WIDE_SHAPE if is_wide else tiny_shape(architecture)
    writer = gguf.GGUFWriter(path, architecture, split_max_tensors=tensors_per_shard)
    _add_gguf_metadata(writer, shape, controls, unused)
    writer.add_chat_template(template)
    if pooling is not None:
        writer.add_pooling_type(pooling)
    writer.add_file_type(gguf.LlamaFileType[_file_type_name(storage)])
    for name, weight in tiny_weights(architecture, seed, tied=tied, shape=shape).items():
        if unused and name in ("model.embed_tokens.weight", "lm_head.weight"):
            weight = np.concatenate([weight, np.full((unused, shape.width), 0.01, np.float32)])
        if architecture == "llama" and ("q_proj" in name or "k_proj" in name):
            weight = _interleave_rotary_rows(weight, shape.head_dim)
        kind = gguf.GGMLQuantizationType[storage if weight.ndim == 2 else "F32"]
        writer.add_tensor(gguf_tensor_name(name), _quantize(weight, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    if not tensors_per_shard:
        return path
    return sorted(folder.glob(f"{path.stem}-00001-of-*.gguf"))[0]


def _quantize(weight: np.ndarray, kind: gguf.GGMLQuantizationType) -> np.ndarray:
    try:
        return gguf.quantize(weight, kind)
    except NotImplementedError:
        blocks = random_blocks(kind.name, weight.shape, seed=len(weight))
        return blocks.reshape(len(weight), -1)


def gguf_tensor_name(name: str) -> str:
    """The GGUF name of a Hugging Face parameter of these architectures."""
    stem, _, ending = name.rpartition(".")
    if stem.startswith("model.layers."):
        _, _, layer, part = stem.split(".", 3)
        return f"blk.{layer}.{_GGUF_NAMES[part]}.{ending}"
    return f"{_GGUF_NAMES[stem]}.{ending}"


def _file_type_name(storage: str) -> str:
    names = {"F32": "ALL_F32", "MXFP4": "MOSTLY_MXFP4_MOE"}
    name = names.get(storage, f"MOSTLY_{storage}")
    return name if name in gguf.LlamaFileType.__members__ else f"{name}_M"


def _interleave_rotary_rows(weight: np.ndarray, head_dim: int) -> np.ndarray:
    """Row order per head: from (0 .. d/2, d/2 .. d) to (0, d/2, 1, d/2 + 1, ...)."""
    halves = weight.reshape(-1, 2, head_dim // 2, weight.shape[1])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(weight.shape)


def _add_gguf_metadata(
    writer: gguf.GGUFWriter, shape: TinyShape, controls: tuple[str, ...], unused: int
) -> None:
    tokens, merges = tiny_vocabulary()
    kinds = [gguf.TokenType.CONTROL] * len(CONTROL_TOKENS)
    kinds += [gguf.TokenType.NORMAL] * (len(tokens) - len(CONTROL_TOKENS))
    if controls:
        tokens[-len(controls) :] = controls
        kinds[-len(controls) :] = [gguf.TokenType.CONTROL] * len(controls)
        merges = [(a, b) for a, b in merges if a + b in tokens]
    tokens += [f"<unused{number}>" for number in range(unused)]
    kinds += [gguf.TokenType.UNUSED] * unused
    writer.add_name("Tiny")
    writer.add_block_count(shape.layers)
    writer.add_context_length(CONTEXT_TOKENS)
    writer.add_embedding_length(shape.width)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_layer_norm_rms_eps(NORM_EPSILON)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([f"{a} {b}" for a, b in merges])
    writer.add_bos_token_id(BOS_ID)
    writer.add_eos_token_id(EOS_ID)
    writer.add_unk_token_id(UNKNOWN_ID)
    writer.add_add_bos_token(False)


def write_tiny_folder(
    folder: Path,
    *,
    model_type: str = "llama",
    seed: int = 0,
    tied: bool = True,
    dtype: str = "F32",
    shards: int = 1,
    shape: TinyShape | None = None,
    context_tokens: int = CONTEXT_TOKENS,
    pooling_mode: str | None = None,
) -> Path:
    """Write a Hugging Face folder ("llama", "mistral", "qwen2", "qwen3") and return it.

    `dtype` is F32, F16 or BF16, for every tensor; with more than one of `shards` there is an index. `shape` is another
    than the tiny one. With a `pooling_mode` ("mean_tokens", "cls_token", "lasttoken") it is as sentence-transformers
    writes one, tensors without the beginning "model." in their names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shape = shape or tiny_shape(model_type)
    stored = {name: (dtype, weight.shape, encode_floats(weight, dtype))
              for name, weight in tiny_weights(model_type, seed, tied=tied, shape=shape).items()}  # fmt: skip
    if pooling_mode is not None:
        stored = {name.removeprefix("model."): tensor for name, tensor in stored.items()}
        (folder / "1_Pooling").mkdir(exist_ok=True)
        modes = {f"pooling_mode_{name}": name == pooling_mode
                 for name in ("cls_token", "mean_tokens", "max_tokens", "lasttoken")}  # fmt: skip
        _write_json(folder / "1_Pooling" / "config.json", modes)
    if shards == 1:
        write_safetensors(folder / "model.safetensors", stored)
    else:
        weight_map = {}
        for shard in range(shards):
            file_name = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
            part = {name: stored[name] for name in list(stored)[shard::shards]}
            write_safetensors(folder / file_name, part)
            weight_map |= dict.fromkeys(part, file_name)
        _write_json(
            folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": weight_map}
        )
    config = _config(model_type, shape, tied=tied)
    _write_json(folder / "config.json", config | {"max_position_embeddings": context_tokens})
    _write_json(
        folder / "generation_config.json",
        {"bos_token_id": BOS_ID, "eos_token_id": [EOS_ID, UNKNOWN_ID]},
    )
    _write_tokenizer(folder)
    return folder


def encode_floats(values: np.ndarray, dtype: str) -> bytes:
    """The little-endian bytes of `values` as F32, F16 or BF16."""
    return gguf.quantize(values, gguf.GGMLQuantizationType[dtype]).tobytes()


def write_safetensors(path: Path, tensors: dict[str, tuple[str, tuple[int, ...], bytes]]) -> None:
    """Write name -> (dtype, shape, bytes) as they are, sound or not."""
    header, offset = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {
            "dtype": dtype,
            "shape": shape,
            "data_offsets": [offset, offset + len(data)],
        }
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(
        struct.pack("<Q", len(text)) + text + b"".join(data for *_, data in tensors.values())
    )


def _config(model_type: str, shape: TinyShape, *, tied: bool) -> dict[str, object]:
    config: dict[str, object] = {
        "architectures": [f"{model_type.capitalize()}ForCausalLM"],
        "model_type": model_type,
        "torch_dtype": "float32",
        "hidden_size": shape.width,
        "intermediate_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": NORM_EPSILON,
        "rope_theta": ROPE_BASE,
        "vocab_size": len(tiny_vocabulary()[0]),
        "tie_word_embeddings": tied,
        "bos_token_id": BOS_ID,
        "eos_token_id": EOS_ID,
    }
    if model_type == "qwen2":
        del config["head_dim"]  # real ones leave it to width / heads
    if model_type == "mistral":
        config["sliding_window"] = None
    return config


def _write_tokenizer(folder: Path) -> None:
    tokens, merges = tiny_vocabulary()
    tokenizer = Tokenizer(
        models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in CONTROL_TOKENS]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    named = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "unk_token": "<|endoftext|>"}
    _write_json(folder / "special_tokens_map.json", named)
    _write_json(
        folder / "tokenizer_config.json",
        {
            **named,
            "tokenizer_class": "PreTrainedTokenizerFast",
            "add_bos_token": False,
            "model_max_length": CONTEXT_TOKENS,
            "chat_template": CHAT_TEMPLATE,
        },
    )


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False), encoding="utf-8")
