"""A Hugging Face folder as a `Checkpoint`: config.json, safetensors files, tokenizer and template.

The `safetensors` library checks the header of each weight file; what it does not know (the index,
the JSON files beside it, what may be a weight) is checked here. Pickled weights are refused, and
no name in a file leads out of the folder. Used by the thread that opened it. No torch.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open

from engine.errors import CorruptModel, ModelNotFound, UnsupportedModel
from engine.formats.base import Checkpoint, FileFormat, FolderText, Place, TensorInfo
from engine.formats.json_files import read_json, read_json_list, read_text
from engine.formats.mapped_file import DAMAGED, MappedFile, shorten
from kernels.quant import block_format

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
PICKLED_SUFFIXES = frozenset({".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle"})
WEIGHT_TYPES = ("F32", "F16", "BF16")
MAX_HEADER_BYTES = 8 << 20
MAX_CONFIG_BYTES = 1 << 20
MAX_TOKENIZER_CONFIG_BYTES = 4 << 20
MAX_INDEX_BYTES = 12 << 20
"""A model of 100,000 tensors has an index of some 10 MiB. Hostile JSON takes 25 times its size when
parsed, which is why these limits are what they are."""
MAX_TOKENIZER_BYTES = 64 << 20
MAX_SHARDS = 4096

_HEADER_LENGTH_BYTES = 8


def open_folder(folder: Path) -> Checkpoint:
    """Open a folder with config.json and model.safetensors, or an index and its shards.

    Raises ModelNotFound, CorruptModel, UnsupportedModel, OSError.
    """
    config = read_json(folder / "config.json", limit=MAX_CONFIG_BYTES)
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or not model_type:
        raise CorruptModel(
            f"config.json: model_type must name the architecture, it is {shorten(model_type)}"
        )
    folder_text = _read_folder_text(folder)
    shards = _find_shards(folder)
    tensors: dict[str, TensorInfo] = {}
    places: dict[str, Place] = {}
    with contextlib.ExitStack() as stack:
        files = []
        for file_name, names in shards.items():
            file = MappedFile(folder / file_name)
            stack.callback(file.close)
            files.append(file)
            for info, place in _read_shard(file, names):
                tensors[info.name] = info
                places[info.name] = place
        checkpoint = Checkpoint(
            path=folder,
            format=FileFormat.SAFETENSORS,
            architecture=model_type,
            metadata=config,
            tensors=tensors,
            places=places,
            files=tuple(files),
            chat_template=_chat_template(folder, folder_text.tokenizer_config),
            folder_text=folder_text,
        )
        stack.pop_all()
        return checkpoint


def _read_shard(file: MappedFile, names: frozenset[str] | None) -> list[tuple[TensorInfo, Place]]:
    """The tensors `names` (all, if None) of one file."""
    found = _read_header(file)
    if names is None:
        return list(found.values())
    missing = sorted(names - found.keys())
    if missing:
        raise CorruptModel(
            f"{INDEX_FILE}: {len(missing)} tensors are not in {file.path.name} where it has them, "
            f"the first is {shorten(missing[0])}; {DAMAGED}"
        )
    return [found[name] for name in sorted(names)]


def _find_shards(folder: Path) -> dict[str, frozenset[str] | None]:
    """File names and the tensors wanted of each; None stands for all."""
    if (folder / INDEX_FILE).is_file():
        return dict(_read_index(folder))
    if (folder / SINGLE_FILE).is_file():
        return {SINGLE_FILE: None}
    refuse_pickled(folder)
    raise ModelNotFound(
        f"{folder} has neither {SINGLE_FILE} nor {INDEX_FILE}; download the model's weights into it"
    )


def refuse_pickled(path: Path) -> None:
    """Raise UnsupportedModel if `path` is a pickled weight file, or a folder that holds one."""
    candidates = sorted(path.iterdir()) if path.is_dir() else [path]
    for candidate in candidates:
        if candidate.suffix.lower() in PICKLED_SUFFIXES:
            raise UnsupportedModel(
                f"{candidate.name}: pickled weights are refused, for they can run any code; "
                "use a safetensors or GGUF version of the model"
            )


def _read_index(folder: Path) -> dict[str, frozenset[str]]:
    weight_map = read_json(folder / INDEX_FILE, limit=MAX_INDEX_BYTES).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CorruptModel(f"{INDEX_FILE}: weight_map must map tensors to files; {DAMAGED}")
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    for tensor, file_name in weight_map.items():
        if not isinstance(file_name, str) or not _is_plain_name(file_name):
            raise CorruptModel(
                f"{INDEX_FILE}: {shorten(tensor)} lies in {shorten(file_name)}, allowed are names of "
                f".safetensors files in the same folder; {DAMAGED}"
            )
        wanted[file_name].add(tensor)
    if len(wanted) > MAX_SHARDS:
        raise CorruptModel(f"{INDEX_FILE}: names {len(wanted)} files, the limit is {MAX_SHARDS}")
    missing = sorted(name for name in wanted if not (folder / name).is_file())
    if missing:
        raise ModelNotFound(
            f"{folder}: {len(missing)} of {len(wanted)} weight files are missing, the first is "
            f"{shorten(missing[0])}; download all of them into the folder"
        )
    return {name: frozenset(wanted[name]) for name in sorted(wanted)}


def _is_plain_name(name: str) -> bool:
    """Whether it can only mean a file in the folder, on every system; links are the user's own."""
    return name.endswith(".safetensors") and not set(name) & set("/\\:\0") and len(name) < 256


def _read_header(file: MappedFile) -> dict[str, tuple[TensorInfo, Place]]:
    """The tensors of one file by name."""
    name = file.path.name
    length = int.from_bytes(file.data[:_HEADER_LENGTH_BYTES], "little")
    if length > MAX_HEADER_BYTES:
        raise CorruptModel(
            f"{name}: header length is {length}, the limit is {MAX_HEADER_BYTES}; {DAMAGED}"
        )
    tensors: dict[str, tuple[TensorInfo, Place]] = {}
    offset = _HEADER_LENGTH_BYTES + length
    try:
        with safe_open(str(file.path), framework="numpy") as header:
            # The library has made sure that in this order they lie end to end, up to the file's end.
            for key in header.offset_keys():
                part = header.get_slice(key)
                info = _tensor_info(name, key, part.get_dtype(), tuple(part.get_shape()))
                tensors[key] = (info, Place(file, offset))
                offset += info.num_bytes
    except SafetensorError as error:
        raise CorruptModel(f"{name}: {shorten(str(error), 200)}; {DAMAGED}") from error
    if offset != file.size:
        raise CorruptModel(
            f"{name}: its tensors end at {offset}, the file at {file.size} bytes; {DAMAGED}"
        )
    return tensors


def _tensor_info(file_name: str, name: str, dtype: str, shape: tuple[int, ...]) -> TensorInfo:
    if dtype not in WEIGHT_TYPES:
        raise UnsupportedModel(
            f"{file_name}: tensor {shorten(name)} is stored as {dtype}, weights can be "
            f"{', '.join(WEIGHT_TYPES)}; get such a version, or a GGUF one"
        )
    if not shape or not all(shape):
        raise CorruptModel(
            f"{file_name}: tensor {shorten(name)} has no values in its shape {shape}"
        )
    return TensorInfo(name, shape, dtype, block_format(dtype).num_bytes(shape))


def _read_folder_text(folder: Path) -> FolderText:
    tokenizer_json = folder / "tokenizer.json"
    found = tokenizer_json.is_file()
    if found and tokenizer_json.stat().st_size > MAX_TOKENIZER_BYTES:
        raise CorruptModel(
            f"tokenizer.json has {tokenizer_json.stat().st_size} bytes, the limit is {MAX_TOKENIZER_BYTES}"
        )
    return FolderText(
        tokenizer_json=tokenizer_json if found else None,
        tokenizer_config=_optional_json(
            folder / "tokenizer_config.json", MAX_TOKENIZER_CONFIG_BYTES
        ),
        special_tokens=_optional_json(folder / "special_tokens_map.json", MAX_CONFIG_BYTES),
        generation_config=_optional_json(folder / "generation_config.json", MAX_CONFIG_BYTES),
        pooling=_optional_json(folder / "1_Pooling" / "config.json", MAX_CONFIG_BYTES),
        modules=_read_modules(folder / "modules.json"),
    )


def _read_modules(path: Path) -> tuple[str, ...]:
    """The last part of each module's type; none where there is no such file."""
    if not path.is_file():
        return ()
    modules = read_json_list(path, limit=MAX_CONFIG_BYTES)
    kinds = [module.get("type") if isinstance(module, dict) else None for module in modules]
    names = tuple(kind.rpartition(".")[2] for kind in kinds if isinstance(kind, str))
    if len(names) != len(kinds):
        raise CorruptModel(f"{path.name}: must list modules, each with a type; {DAMAGED}")
    return names


def _optional_json(path: Path, limit: int) -> Mapping[str, object]:
    """The file's object; an empty mapping when there is no such file."""
    return read_json(path, limit=limit) if path.is_file() else {}


def _chat_template(folder: Path, tokenizer_config: Mapping[str, object]) -> str | None:
    """The default template; a file of its own goes before the one in tokenizer_config.json."""
    alone = folder / "chat_template.jinja"
    if alone.is_file():
        return read_text(alone, limit=MAX_CONFIG_BYTES)
    template = _optional_json(folder / "chat_template.json", MAX_CONFIG_BYTES).get("chat_template")
    if template is None:
        template = tokenizer_config.get("chat_template")
    if isinstance(template, list):  # several, by name
        named = [t for t in template if isinstance(t, dict) and t.get("name") == "default"]
        template = named[0].get("template") if named else None
    if template is not None and not isinstance(template, str):
        raise CorruptModel(f"{folder.name}: chat_template must be text, it is {shorten(template)}")
    return template
