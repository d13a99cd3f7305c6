"""Opens a model whatever its format, and tells the facts about one without loading it.

`open_checkpoint` is the one way in; what it returns is a `Checkpoint` (see `engine.formats.base`).
Runs on the engine thread or any worker thread; the result stays on it. No torch.
"""

from __future__ import annotations

import math
from collections import Counter
from contextlib import closing
from pathlib import Path

from engine.api import ModelInfo
from engine.errors import CorruptModel, ModelNotFound, UnsupportedModel
from engine.formats.base import Checkpoint, FileFormat, FolderText, TensorInfo
from engine.formats.gguf_checkpoint import first_shard_name, open_gguf
from engine.formats.mapped_file import shorten
from engine.formats.pooling import Pooling, read_pooling
from engine.formats.safetensors import INDEX_FILE, SINGLE_FILE, open_folder, refuse_pickled
from engine.system_faults import system_fault

__all__ = [
    "Checkpoint",
    "FileFormat",
    "FolderText",
    "TensorInfo",
    "inspect_model",
    "open_checkpoint",
]

MAX_CONTEXT_TOKENS = 1 << 31

_MAX_SIZE = 1 << 20
_GGUF_SIZES = (
    "block_count",
    "embedding_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
)
_CONFIG_SIZES = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
)


def open_checkpoint(path: Path) -> Checkpoint:
    """Open a GGUF file (any file of a split one), a Hugging Face folder, or a folder of one GGUF model.

    No weights are read yet. The caller closes it.
    Raises ModelNotFound, CorruptModel, UnsupportedModel; see `engine.errors`.
    """
    try:
        if not path.exists():
            raise ModelNotFound(f"{path} does not exist; check the path")
        if path.is_dir():
            return _open_any_folder(path)
        if path.suffix.lower() == ".safetensors":
            raise UnsupportedModel(
                f"{path.name}: is only the weights; give the folder that holds it and config.json"
            )
        refuse_pickled(path)
        return open_gguf(path)
    except OSError as error:
        raise ModelNotFound(
            f"{path} cannot be read: {system_fault(error)}; check the path and your rights"
        ) from error


def _open_any_folder(folder: Path) -> Checkpoint:
    has_weights = (folder / SINGLE_FILE).is_file() or (folder / INDEX_FILE).is_file()
    models = {first_shard_name(path): path for path in folder.glob("*.gguf")}
    if has_weights or not models:
        return open_folder(folder)
    if len(models) > 1:
        names = ", ".join(sorted(models))
        raise UnsupportedModel(
            f"{folder} holds {len(models)} GGUF models ({names:.500}); give one of them"
        )
    return open_gguf(models.popitem()[1])


def inspect_model(path: Path, name: str) -> ModelInfo:
    """Facts about the model at `path`, read without its weights. Raises as `open_checkpoint`."""
    with closing(open_checkpoint(path)) as checkpoint:
        infos = checkpoint.tensors.values()
        return ModelInfo(
            name=name,
            path=path,
            architecture=checkpoint.architecture,
            quantization=_dominant_storage(checkpoint),
            parameters=sum(math.prod(info.shape) for info in infos),
            size_bytes=sum(file.size for file in checkpoint.files),
            context_tokens=_context_tokens(checkpoint),
            has_chat_template=checkpoint.chat_template is not None,
            created_s=checkpoint.files[0].modified_s,
            kv_values_per_token=_kv_values_per_token(checkpoint),
            license=_license(checkpoint),
            thinks="think" in (checkpoint.chat_template or ""),
            embedding_size=_embedding_size(checkpoint),
        )


def _kv_values_per_token(checkpoint: Checkpoint) -> int:
    """Keys and values of one token in all layers; 0 where the files do not say or contradict themselves.

    What is loaded is checked by `engine.models.spec`; this is only an estimate's base.
    """
    is_gguf = checkpoint.format is FileFormat.GGUF
    names = _GGUF_SIZES if is_gguf else _CONFIG_SIZES
    prefix = f"{checkpoint.architecture}." if is_gguf else ""

    def read(name: str, default: int) -> int:
        value = checkpoint.metadata.get(prefix + name, default)
        return value if type(value) is int and 0 < value <= _MAX_SIZE else 0

    layers, hidden, heads = (read(name, 0) for name in names[:3])
    if not (layers and hidden and heads):
        return 0
    kv_heads, head_dim = read(names[3], heads), read(names[4], hidden // heads)
    return 2 * layers * kv_heads * head_dim


def _embedding_size(checkpoint: Checkpoint) -> int:
    """Numbers of an embedding; 0 for a model that writes text, or whose files do not say."""
    if read_pooling(checkpoint) is Pooling.NONE:
        return 0
    is_gguf = checkpoint.format is FileFormat.GGUF
    key = f"{checkpoint.architecture}.embedding_length" if is_gguf else "hidden_size"
    value = checkpoint.metadata.get(key, 0)
    return value if type(value) is int and 0 < value <= _MAX_SIZE else 0


def _license(checkpoint: Checkpoint) -> str:
    """One line of what a GGUF file says; folders keep theirs in files of their own."""
    value = checkpoint.metadata.get("general.license", "")
    return " ".join(value.split())[:60] if isinstance(value, str) else ""


def _dominant_storage(checkpoint: Checkpoint) -> str:
    """How most parameters of matrices are stored; "none" for a file without any."""
    parameters: Counter[str] = Counter()
    for info in checkpoint.tensors.values():
        if len(info.shape) > 1:
            parameters[info.storage] += math.prod(info.shape)
    return parameters.most_common(1)[0][0] if parameters else "none"


def _context_tokens(checkpoint: Checkpoint) -> int:
    """The window the model was made for; 0 where its files do not say."""
    if checkpoint.format is FileFormat.GGUF:
        key = f"{checkpoint.architecture}.context_length"
    else:
        key = "max_position_embeddings"
    value = checkpoint.metadata.get(key, 0)
    if type(value) is not int or not 0 <= value <= MAX_CONTEXT_TOKENS:
        raise CorruptModel(
            f"{checkpoint.path.name}: {shorten(key)} is {shorten(value)}, allowed is up to {MAX_CONTEXT_TOKENS}"
        )
    return value
