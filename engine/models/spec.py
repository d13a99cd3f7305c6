"""What kind of model a file holds, as numbers that have been checked. Pure; used by the thread that loads.

`parse_spec` is the one way in, for GGUF metadata and for config.json alike. Sizes are bounded here; whether the file's
tensors have these sizes is checked when they are mapped (`engine.models.weight_map`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.errors import CorruptModel, UnsupportedModel
from engine.formats.base import Checkpoint, FileFormat
from engine.formats.pooling import Pooling, read_pooling
from engine.models.fields import Fields, is_finite_positive
from engine.models.rope import Rope, config_rope, divided_rope, gguf_rope
from kernels.api import Activation

MAX_LAYERS = 1024
MAX_WIDTH = 1 << 20
MAX_HEADS = 4096
MAX_HEAD_DIM = 4096
MAX_VOCABULARY = 1 << 24
MAX_CONTEXT_TOKENS = 1 << 30

_ACTIVATIONS = {
    "silu": Activation.SILU,
    "swish": Activation.SILU,
    "gelu_pytorch_tanh": Activation.GELU_TANH,
}
_LOOKS_AHEAD = (
    "models whose attention looks ahead (is_causal is false) are not supported; for embeddings take one that does not, "
    "such as Qwen3-Embedding"
)
_ROPE_FREQS = "rope_freqs.weight"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """Sizes and switches of a decoder of the Llama family. `heads` is a multiple of `kv_heads`, `head_dim` even."""

    architecture: str
    vocab_size: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    context_tokens: int
    """The window the model was made for."""
    norm_epsilon: float
    rope: Rope
    activation: Activation
    tied_embeddings: bool
    """The head is the embedding table."""
    qkv_bias: bool
    output_bias: bool
    """A bias after attention's output projection."""
    mlp_bias: bool
    windows: tuple[int, ...]
    """By layer: the sliding window in tokens, 0 for none."""
    pooling: Pooling = Pooling.NONE
    """Of a model that gives embeddings: its step ends with the last norm, and there is no head."""

    @property
    def gives_embeddings(self) -> bool:
        return self.pooling is not Pooling.NONE

    @property
    def output_width(self) -> int:
        """Numbers that a step gives for a token: the vocabulary's logits, or the last state."""
        return self.hidden if self.gives_embeddings else self.vocab_size


def parse_spec(checkpoint: Checkpoint) -> ModelSpec:
    """Read and check the hyper-parameters.

    Raises CorruptModel naming the field, UnsupportedModel naming what this version cannot run.
    """
    if checkpoint.format is FileFormat.GGUF:
        spec = _parse_gguf(checkpoint)
    else:
        spec = _parse_config(checkpoint)
    pooling = read_pooling(checkpoint)
    if pooling is Pooling.OTHER:
        raise UnsupportedModel(
            "this way of making one vector of a text (a reranker's score, say) is not supported; mean, first and last "
            "token are"
        )
    spec = replace(spec, pooling=pooling)
    if spec.heads % spec.kv_heads:
        raise CorruptModel(
            f"{spec.heads} attention heads cannot share {spec.kv_heads} key heads evenly; the file is damaged"
        )
    if spec.head_dim % 2:
        raise CorruptModel(f"heads have {spec.head_dim} values, it must be an even number")
    return spec


def _parse_gguf(checkpoint: Checkpoint) -> ModelSpec:
    fields = Fields(checkpoint.metadata, f"{checkpoint.architecture}.")
    if fields.integer("expert_count", 0, 1 << 20, default=0):
        raise UnsupportedModel("mixture-of-experts models are not supported yet")
    if not fields.flag("attention.causal", default=True):
        raise UnsupportedModel(_LOOKS_AHEAD)
    layers = fields.integer("block_count", 1, MAX_LAYERS)
    hidden = fields.integer("embedding_length", 1, MAX_WIDTH)
    heads = fields.integer("attention.head_count", 1, MAX_HEADS)
    head_dim = fields.integer("attention.key_length", 1, MAX_HEAD_DIM, default=hidden // heads)
    if fields.integer("attention.value_length", 1, MAX_HEAD_DIM, default=head_dim) != head_dim:
        raise UnsupportedModel("attention.value_length other than key_length is not supported")
    context_tokens = fields.integer("context_length", 1, MAX_CONTEXT_TOKENS)
    window = fields.integer("attention.sliding_window", 0, MAX_CONTEXT_TOKENS, default=0)
    tensors = checkpoint.tensors
    return ModelSpec(
        architecture=checkpoint.architecture,
        vocab_size=_gguf_vocabulary(checkpoint),
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=fields.integer("attention.head_count_kv", 1, MAX_HEADS, default=heads),
        head_dim=head_dim,
        ffn=fields.integer("feed_forward_length", 1, MAX_WIDTH),
        context_tokens=context_tokens,
        norm_epsilon=fields.number("attention.layer_norm_rms_epsilon", 1e-12, 1.0),
        rope=_divide_by_tensor(gguf_rope(fields, head_dim, context_tokens), checkpoint),
        activation=Activation.SILU,
        tied_embeddings="output.weight" not in tensors,
        qkv_bias="blk.0.attn_q.bias" in tensors,
        output_bias="blk.0.attn_output.bias" in tensors,
        mlp_bias="blk.0.ffn_down.bias" in tensors,
        windows=(window,) * layers,
    )


def _gguf_vocabulary(checkpoint: Checkpoint) -> int:
    """The rows of the embedding table, which some files do not say in metadata."""
    table = checkpoint.tensors.get("token_embd.weight")
    if table is None or len(table.shape) != 2 or not 1 <= table.shape[0] <= MAX_VOCABULARY:
        raise CorruptModel(
            f"token_embd.weight must be a table of 1 to {MAX_VOCABULARY} rows; the file is damaged"
        )
    return table.shape[0]


def _divide_by_tensor(rope: Rope, checkpoint: Checkpoint) -> Rope:
    """Apply rope_freqs.weight, where converted Llama 3 models keep their scaling."""
    info = checkpoint.tensors.get(_ROPE_FREQS)
    if info is None:
        return rope
    if info.shape != (len(rope.inverse_frequencies),):
        raise CorruptModel(
            f"{_ROPE_FREQS} has shape {list(info.shape)}, it must be [{len(rope.inverse_frequencies)}]"
        )
    divisors = checkpoint.read_float32(_ROPE_FREQS).tolist()
    if not is_finite_positive(divisors):
        raise CorruptModel(f"{_ROPE_FREQS} must hold positive numbers; the file is damaged")
    return divided_rope(rope, divisors)


def _parse_config(checkpoint: Checkpoint) -> ModelSpec:
    config = Fields(checkpoint.metadata)
    if config.has("quantization_config"):
        method = config.table("quantization_config").text("quant_method", default="unknown")
        raise UnsupportedModel(
            f"weights quantised by {method!r:.40} (quantization_config) are not supported; get the plain model"
        )
    if not config.flag("is_causal", default=True):
        raise UnsupportedModel(_LOOKS_AHEAD)
    layers = config.integer("num_hidden_layers", 1, MAX_LAYERS)
    hidden = config.integer("hidden_size", 1, MAX_WIDTH)
    heads = config.integer("num_attention_heads", 1, MAX_HEADS)
    head_dim = config.integer("head_dim", 1, MAX_HEAD_DIM, default=max(1, hidden // heads))
    activation = config.text("hidden_act", default="silu")
    if activation not in _ACTIVATIONS:
        raise UnsupportedModel(
            f"hidden_act {activation!r:.40} is not supported; {', '.join(_ACTIVATIONS)} are"
        )
    bias = config.flag("attention_bias", default=False)
    has_head = "lm_head.weight" in checkpoint.tensors
    return ModelSpec(
        architecture=checkpoint.architecture,
        vocab_size=config.integer("vocab_size", 1, MAX_VOCABULARY),
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=config.integer("num_key_value_heads", 1, MAX_HEADS, default=heads),
        head_dim=head_dim,
        ffn=config.integer("intermediate_size", 1, MAX_WIDTH),
        context_tokens=config.integer("max_position_embeddings", 1, MAX_CONTEXT_TOKENS),
        norm_epsilon=config.number("rms_norm_eps", 1e-12, 1.0, default=1e-6),
        rope=config_rope(config, head_dim),
        activation=_ACTIVATIONS[activation],
        tied_embeddings=config.flag("tie_word_embeddings", default=not has_head),
        qkv_bias=bias,
        output_bias=bias,
        mlp_bias=config.flag("mlp_bias", default=False),
        windows=_config_windows(config, checkpoint.architecture, layers),
    )


def _config_windows(config: Fields, architecture: str, layers: int) -> tuple[int, ...]:
    """Sliding windows as each architecture's Hugging Face configuration means them."""
    if architecture == "mistral":
        return (config.integer("sliding_window", 0, MAX_CONTEXT_TOKENS, default=0),) * layers
    if not config.flag("use_sliding_window", default=False):
        return (0,) * layers
    window = config.integer("sliding_window", 1, MAX_CONTEXT_TOKENS)
    kinds = config.raw("layer_types")
    if kinds is None:
        first = config.integer("max_window_layers", 0, MAX_LAYERS, default=28)
        return tuple(window if layer >= first else 0 for layer in range(layers))
    if not isinstance(kinds, list) or len(kinds) != layers:
        raise config.wrong("layer_types", f"must be a list of {layers} kinds")
    windows = {"full_attention": 0, "sliding_attention": window}
    for kind in kinds:
        if not isinstance(kind, str) or kind not in windows:
            raise UnsupportedModel(f"layer_types has {kind!r:.40}; {', '.join(windows)} are known")
    return tuple(windows[kind] for kind in kinds)
