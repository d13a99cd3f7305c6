"""The models against Hugging Face transformers in float32, over the same files.

GGUF files are read for transformers by the `gguf` package, so that our readers are checked too.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
import transformers  # each of its classes takes its time when it is asked for

from engine.api import KvType, LoadOptions
from engine.formats.checkpoint import open_checkpoint
from engine.runtime.model_runner import ModelRunner
from engine.text.tokenizer import load_tokenizer
from fakes.runner_driver import generate
from fakes.tiny_files import gguf_tensor_name, write_tiny_folder, write_tiny_gguf

PROMPTS = (
    "The capital of France is",
    "Once upon a time, in a village by the sea,",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    "Water boils at a temperature of",
    "The three primary colours are red,",
    "<|im_start|>user\nWhat is 2 + 2?<|im_end|>\n<|im_start|>assistant\n",
    "In 1969, the first human being to walk on the Moon was",
    "To bake bread you need flour, yeast, salt and",
    "Dear Sir or Madam,\n\nI am writing to",
    "A poem about autumn:\n\nLeaves of gold" + " and red and brown" * 80,
)
OPTIONS = LoadOptions(pool_tokens=1024, threads=2, kv_type=KvType.F32)
VARIANTS = ("native", "torch")
TINY_PROMPT = list(range(3, 203)) + list(range(90, 190))


def _load(path: Path, options: LoadOptions = OPTIONS) -> ModelRunner:
    with closing(open_checkpoint(path)) as checkpoint:
        return ModelRunner.load(checkpoint, options, lambda share: None)


def _last_logits(model: transformers.PreTrainedModel, token_ids: list[int]) -> np.ndarray:
    with torch.no_grad():
        return model(torch.tensor([token_ids])).logits[0, -1].numpy()


def _relative_error(logits: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(logits - expected) / np.linalg.norm(expected))


def _reference(folder: Path) -> transformers.PreTrainedModel:
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def _fill_from_gguf(
    model: transformers.PreTrainedModel, path: Path, *, paired_head_dim: int = 0
) -> None:
    """Put a GGUF file's dequantised weights into a model; llama's query and key rows come in rotary pairs."""
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    weights = {}
    for name in model.state_dict():
        if name == "lm_head.weight" and "output.weight" not in tensors:
            continue
        tensor = tensors[gguf_tensor_name(name)]
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        if paired_head_dim and ("q_proj" in name or "k_proj" in name):
            pairs = values.reshape(-1, paired_head_dim // 2, 2, values.shape[-1])
            values = pairs.swapaxes(1, 2).reshape(values.shape)
        weights[name] = torch.from_numpy(np.array(values, dtype=np.float32))
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert set(missing) <= {"lm_head.weight"}
    assert not unexpected


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("architecture", ["llama", "mistral", "qwen2", "qwen3"])
def test_a_tiny_folder_gives_the_same_logits(architecture: str, tied: bool, tmp_path: Path) -> None:
    folder = write_tiny_folder(tmp_path, model_type=architecture, tied=tied)
    expected = _last_logits(_reference(folder), TINY_PROMPT)
    for kv_type, tolerance in ((KvType.F32, 1e-4), (KvType.F16, 2e-3), (KvType.Q8_0, 2e-2)):
        for variant in VARIANTS:
            options = LoadOptions(pool_tokens=512, threads=1, kv_type=kv_type, cpu_variant=variant)
            (reply,) = generate(_load(folder, options), [TINY_PROMPT], new_tokens=1)
            assert _relative_error(reply.logits[0], expected) < tolerance


@pytest.mark.parametrize("storage", ["F32", "F16", "Q4_1", "Q8_0"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_a_tiny_gguf_file_gives_the_same_logits(
    architecture: str, variant: str, storage: str, tmp_path: Path
) -> None:
    path = write_tiny_gguf(tmp_path, architecture=architecture, storage=storage)
    model = _reference(write_tiny_folder(tmp_path / "folder", model_type=architecture))
    _fill_from_gguf(model, path, paired_head_dim=16 if architecture == "llama" else 0)
    expected = _last_logits(model, TINY_PROMPT)
    options = replace(OPTIONS, cpu_variant=variant)
    (reply,) = generate(_load(path, options), [TINY_PROMPT], new_tokens=1)
    # The native kernels multiply quantised weights by rows of 15 bits, some by rows of 12.
    rounded = {"Q4_1": 4e-3, "Q8_0": 5e-4} if variant == "native" else {}
    assert _relative_error(reply.logits[0], expected) < rounded.get(storage, 1e-4)


LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}
QWEN_WINDOW = {"use_sliding_window": True, "sliding_window": 100, "max_window_layers": 1}


@pytest.mark.parametrize(
    ("architecture", "changes"),
    [
        ("llama", {"rope_scaling": LLAMA3}),
        ("llama", {"rope_scaling": {"type": "linear", "factor": 3.0}}),
        ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}),
        ("llama", {"head_dim": None}),
        ("qwen2", {"rope_scaling": YARN}),
        ("qwen3", {"rope_scaling": YARN | {"attention_factor": 0.8, "beta_fast": 16.0}}),
        ("mistral", {"sliding_window": 64}),
        ("qwen2", QWEN_WINDOW),
        ("qwen3", QWEN_WINDOW | {"layer_types": ["sliding_attention", "full_attention"]}),
        ("llama", {"hidden_act": "gelu_pytorch_tanh"}),
    ],
)
def test_what_a_configuration_says_is_done(
    architecture: str, changes: dict[str, object], tmp_path: Path
) -> None:
    folder = write_tiny_folder(tmp_path, model_type=architecture)
    plain = _last_logits(_reference(folder), TINY_PROMPT)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))
    expected = _last_logits(_reference(folder), TINY_PROMPT)
    (reply,) = generate(_load(folder), [TINY_PROMPT], new_tokens=1)
    assert _relative_error(reply.logits[0], expected) < 1e-4
    if changes != {"head_dim": None}:
        assert _relative_error(plain, expected) > 1e-2  # the change matters


@pytest.mark.parametrize("name", ["attention_bias", "mlp_bias"])
def test_biases_of_a_llama_configuration_are_used(name: str, tmp_path: Path) -> None:
    folder = write_tiny_folder(tmp_path, tied=False)
    config = transformers.LlamaConfig.from_pretrained(folder, **{name: True})
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.1)
    model.save_pretrained(folder)
    (reply,) = generate(_load(folder), [TINY_PROMPT], new_tokens=1)
    assert _relative_error(reply.logits[0], _last_logits(model, TINY_PROMPT)) < 1e-4


@pytest.mark.slow
def test_the_starter_model_continues_as_in_transformers(starter_model: Path) -> None:
    config = transformers.LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        rms_norm_eps=1e-5,
        rope_theta=100_000.0,
        tie_word_embeddings=True,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    _fill_from_gguf(model, starter_model, paired_head_dim=64)
    with closing(open_checkpoint(starter_model)) as checkpoint:
        tokenizer = load_tokenizer(checkpoint)
    prompts = [tokenizer.encode(text, parse_special=True) for text in PROMPTS]
    expected = [_last_logits(model, token_ids) for token_ids in prompts]
    for variant in VARIANTS:
        runner = _load(starter_model, LoadOptions(pool_tokens=2048, threads=2, cpu_variant=variant))
        same = 0
        for token_ids, logits in zip(prompts, expected, strict=True):
            (reply,) = generate(runner, [token_ids], new_tokens=1)
            assert _relative_error(reply.logits[0], logits) < 0.005, variant
            same += reply.token_ids[0] == int(logits.argmax())
        assert same >= 9, variant
