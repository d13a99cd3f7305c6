"""The vocabulary of a Hugging Face folder: tokenizer.json and what the files beside it add.

Used by the thread that opens the folder. No torch.
"""

from __future__ import annotations

from dataclasses import replace

from engine.errors import CorruptModel, UnsupportedModel
from engine.formats.base import Checkpoint, FolderText
from engine.formats.mapped_file import DAMAGED, shorten
from engine.text.added_tokens import AddedToken
from engine.text.folder_pipeline import build_pipeline
from engine.text.tokenizer_json import TokenizerJson
from engine.text.vocabulary import SpecialTokens, Vocabulary, end_of_reply_ids, may_be_control

_ROLES = (
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token",
)  # fmt: skip


def read_folder_vocabulary(checkpoint: Checkpoint) -> Vocabulary:
    """The vocabulary and its tokenising pipeline.

    Raises CorruptModel, naming the file and the field, and UnsupportedModel.
    """
    folder = checkpoint.folder_text
    if folder is None or folder.tokenizer_json is None:
        raise UnsupportedModel(
            f"{checkpoint.path.name}: has no tokenizer.json; load its tokenizer with transformers "
            "and write the file with save_pretrained"
        )
    try:
        return _read(checkpoint, folder, TokenizerJson(folder.tokenizer_json))
    except RecursionError as error:
        raise CorruptModel(
            f"{folder.tokenizer_json.name}: is nested too deeply; {DAMAGED}"
        ) from error


def _read(checkpoint: Checkpoint, folder: FolderText, file: TokenizerJson) -> Vocabulary:
    special = _special_tokens(checkpoint, folder, file)
    added = _added_tokens(file, special)
    hidden = {
        token.content
        for token in added
        if token.control and token.content != file.model.get("unk_token")
    }
    return Vocabulary(
        pieces=file.pieces,
        style=file.style(),
        added=added,
        special=special,
        pipeline=build_pipeline(file, frozenset(hidden)),
        space_before_text=file.space_before_text(),
    )


def _special_tokens(
    checkpoint: Checkpoint, folder: FolderText, file: TokenizerJson
) -> SpecialTokens:
    names = {role: text for role in _ROLES if (text := _role_text(folder, role)) is not None}
    ids = {role: file.ids.get(text) for role, text in names.items()}
    ends = _listed_ends(checkpoint, folder, len(file.pieces))
    if (eos_id := ids.get("eos_token")) is not None:
        ends.add(eos_id)
    # Only added tokens end a reply by their name: elsewhere such a piece is ordinary text.
    ends |= end_of_reply_ids({token.content: token.token_id for token, _ in file.added_entries()})
    before, after = file.frame()
    return SpecialTokens(
        bos_id=ids.get("bos_token"),
        eos_ids=frozenset(ends),
        unknown_id=_unknown_id(file),
        prefix=_framed(folder, "add_bos_token", ids.get("bos_token"), before),
        suffix=_framed(folder, "add_eos_token", ids.get("eos_token"), after),
        names=names,
    )


def _role_text(folder: FolderText, role: str) -> str | None:
    """The text of a special token: plain, or inside an object with flags."""
    value = folder.tokenizer_config.get(role)
    if value is None:
        value = folder.special_tokens.get(role)
    if isinstance(value, dict):
        value = value.get("content")
    if value is not None and not isinstance(value, str):
        raise CorruptModel(
            f"tokenizer_config.json: {role} must be text, it is {shorten(value)}; {DAMAGED}"
        )
    return value


def _listed_ends(checkpoint: Checkpoint, folder: FolderText, vocab_size: int) -> set[int]:
    """`eos_token_id` of generation_config.json and config.json: a number or a list of them."""
    ends: set[int] = set()
    for name, config in (
        ("generation_config.json", folder.generation_config),
        ("config.json", checkpoint.metadata),
    ):
        value = config.get("eos_token_id")
        listed = value if isinstance(value, list) else [] if value is None else [value]
        ids = [token_id for token_id in listed if type(token_id) is int]
        if len(ids) != len(listed):
            raise CorruptModel(
                f"{name}: eos_token_id must be a number or a list of them, it is {shorten(value)}; "
                + DAMAGED
            )
        # Configurations carry ids of a larger vocabulary often enough, to no effect.
        ends |= {token_id for token_id in ids if 0 <= token_id < vocab_size}
    return ends


def _unknown_id(file: TokenizerJson) -> int | None:
    """The token that the model itself gives to text it cannot spell."""
    if isinstance(place := file.model.get("unk_id"), int):
        return place
    unknown = file.model.get("unk_token")
    return file.ids.get(unknown) if isinstance(unknown, str) else None


def _framed(
    folder: FolderText, flag: str, token_id: int | None, given: tuple[int, ...]
) -> tuple[int, ...]:
    """What stands at one end of a prompt: as tokenizer.json says unless the flag is set otherwise."""
    wanted = folder.tokenizer_config.get(flag)
    if token_id is None or not isinstance(wanted, bool) or wanted == (token_id in given):
        return given
    return (token_id, *given) if wanted else tuple(i for i in given if i != token_id)


def _added_tokens(file: TokenizerJson, special: SpecialTokens) -> tuple[AddedToken, ...]:
    """The file's added tokens, and those with a role that it does not list among them."""
    steering = set(special.eos_ids) | {file.ids.get(text) for text in special.names.values()}
    added = [
        replace(token, control=is_special or token.token_id in steering)
        for token, is_special in file.added_entries()
    ]
    listed = {token.token_id for token in added}
    added += [
        AddedToken(token_id=token_id, content=file.pieces[token_id], control=True)
        for token_id in steering - listed
        if token_id is not None and may_be_control(file.pieces[token_id])
    ]
    return tuple(added)
