"""Finds every sentence that the window may show, so that a test can hold the catalogues against them.

Literals given to `tr` and `plural` are read from the sources; tables of words are imported; sentences that come with
their figures in them (errors, reasons of waiting) become templates with numbered places. Run as a program, it prints
what a catalogue lacks.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from studio.models.length_limit import LengthLimit
from studio.models.settings import all_settings
from studio.models.snippets import SNIPPETS
from studio.services.attachments.attachment_service import MANY_REFUSED
from studio.services.notice_service import CRASHED_NOTICE, NOTICE_TABLE, UNEXPECTED_NOTICE
from studio.services.reply_fold import MODEL_WAS_UNLOADED, NO_MODEL_WAS_READY
from studio.services.store_troubles import TRIES_AGAIN
from studio.views.actions import COMMANDS, Menu
from studio.views.chat.foot_view import _BUTTONS as FOOT_BUTTONS
from studio.views.error_words import _INSTEAD as ERRORS_INSTEAD
from studio.views.settings.dialog import PAGES
from studio.views.settings.setting_words import choice_words

ROOT = Path(__file__).resolve().parents[2]
ERROR_TREES = ("engine/errors.py", "studio/models/errors.py")
NAMED = "{0}: {1}"
"""Who, and what is wrong: either may be known, though no sentence has both."""
IN_PLACES = (
    "starts",
    "nothing yet",
    "Press shortcut",
    "text",
    "a whole number",
    "true or false",
    "a choice",
    "a value",
    " from {0} to {1}",
    " from {0} to {1}, or 0",
    " from {0} to {1}, a multiple of {2}",
)
"""What callers of composers give them to put into a place, and words of Qt's that are ours."""
FROM_TABLES = frozenset(
    {
        "menu.value",
        "command.text",
        "owner.text",
        "clash.text",
        "label",
        "snippet.where",
        "page.title",
        "own.title",
        "title",
        "heading",
        "declared.info.title",
        "declared.info.unit",
        "declared.info.lowest",
        "setting_field(key).info.title",
        "info.help",
        "_CHOICES.get(choice, str(choice.value).capitalize())",
        "state_words(run.state)",
        "status.problem",
        "state_words(state)",
        "reason_words(wait)",
        "reason_words(park.reason)",
        "reason_words(reply.park.reason)",
        "expected_wait_words(run.expected_wait_s, what=what)",
        "notice.text",
        "notice.detail",
        "note",
        "text",
        "message.note",
        "_INSTEAD[code]",
        "one",
        "many",
    }
)
"""What `tr` is given that is no literal: all of these come from tables, errors and composers that are read here."""
COMPOSERS = (
    "engine/system_faults.py",
    "studio/models/run_words.py",
    "studio/models/json_faults.py",
    "studio/services/network_faults.py",
    "studio/services/tools/link_faults.py",
)
"""Files whose functions return whole sentences that are given to `tr` later."""
RAISERS = (
    "studio/models",
    "studio/services",
    "studio/views/tools/server_form.py",
    "studio/server/thread.py",
    "engine",
)
"""Files and folders whose errors reach the window, with the error's text as their particulars."""
MAY_LACK = (
    "engine/bench",
    "engine/formats",
    "engine/models",
    "engine/sim",
    "engine/text/folder_vocabulary.py",
    "engine/text/gguf_fields.py",
    "engine/text/gguf_vocabulary.py",
    "engine/text/tokenizer.py",
    "engine/text/tokenizer_json.py",
)
"""What is wrong deep inside a model's file is told to its maker, in English; the window says what it comes to."""


OWN_WORDS = (
    "studio/models/local_server_settings.py",
    "studio/services/download_job.py",
    "studio/services/key_store.py",
)
"""Their errors pass on what other sources of ours have said."""


def passed_on() -> list[str]:
    """Where an error of ours tells what a library or the system has said, which no catalogue knows; in the studio.

    The engine's errors that no catalogue knows are told in other words (`studio.views.error_words`).
    """
    own = _error_classes()
    return [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in _files(tuple(name for name in RAISERS if name.startswith("studio")))
        if str(path.relative_to(ROOT)) not in OWN_WORDS
        for handler in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(handler, ast.ExceptHandler) and handler.name and handler.type
        if not {ast.unparse(kind) for kind in _kinds(handler.type)} <= own
        for call in ast.walk(handler)
        if isinstance(call, ast.Call) and _name(call) in own and _tells(call, handler.name)
    ]


def _kinds(caught: ast.expr) -> list[ast.expr]:
    return caught.elts if isinstance(caught, ast.Tuple) else [caught]


def _tells(call: ast.Call, error: str) -> bool:
    """Whether it has the error's own text in its own."""
    whole = {error, f"str({error})", f"{error}.strerror"}
    places = (node for node in ast.walk(call) if isinstance(node, ast.FormattedValue))
    told = {ast.unparse(place.value) for place in places}
    return bool(whole & (told | {ast.unparse(one) for one in call.args}))


@cache
def all_sentences() -> frozenset[str]:
    """Every sentence, as the key that it has in a catalogue."""
    found = {*_of_tables(), *IN_PLACES}
    for path in sorted((ROOT / "studio").rglob("*.py")):
        found |= set(_of_calls(path))
    for name in COMPOSERS:
        found |= set(_of_composer(ROOT / name))
    for path in _files(RAISERS):
        found |= set(_of_errors(path))
    found = {one for one in found if re.sub(r"\{\w*\}", "", one).strip(" ,:()")}
    return frozenset(found | {NAMED})


def unread() -> set[str]:
    """What `tr` is given that is neither a literal nor known to be read from somewhere."""
    given = (
        ast.unparse(node.args[0])
        for path in sorted((ROOT / "studio").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and _name(node) == "tr" and not list(_literals(node.args[0]))
    )
    return set(given) - FROM_TABLES


def missing(table: dict[str, str]) -> list[str]:
    """The sentences that a catalogue lacks and must not lack."""
    may_lack = {text for path in _files(MAY_LACK) for text in _of_errors(path)}
    return sorted(all_sentences() - table.keys() - may_lack)


def _of_tables() -> Iterator[str]:
    for declared in all_settings():
        if declared.info.is_hidden:
            continue
        info = declared.info
        yield from (info.title, info.help, info.unit, info.lowest)
        yield from (choice_words(choice) for choice in declared.choices or ())
    yield from (command.text for command in COMMANDS)
    yield from (menu.value for menu in Menu)
    for page in PAGES:
        yield from (page.title, *(heading for _, heading in page.groups))
    yield from (text for _, text, _ in NOTICE_TABLE.values())
    yield from (snippet.where for snippet in SNIPPETS)
    yield from (label for _, _, label in FOOT_BUTTONS)
    yield from (snippet.where for snippet in SNIPPETS)
    yield from ERRORS_INSTEAD.values()
    yield from (limit.value for limit in LengthLimit)
    yield from (TRIES_AGAIN, MANY_REFUSED)
    yield from (NO_MODEL_WAS_READY, MODEL_WAS_UNLOADED)
    yield from (notice.text for notice in (CRASHED_NOTICE, UNEXPECTED_NOTICE))


def _of_calls(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        match _name(node):
            case "tr":
                yield from _literals(node.args[0])
            case "plural":
                yield from (text for argument in node.args[1:] for text in _literals(argument))
            case "OwnPage":
                yield from _literals(node.args[0])


def _of_composer(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign):
            yield from _whole(node.value)
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        if function.name == "_count":
            continue
        yield from (text for default in function.args.kw_defaults for text in _whole(default))
        for statement in function.body[1:] if ast.get_docstring(function) else function.body:
            yield from _whole(statement)


def _whole(node: ast.AST | None) -> Iterator[str]:
    """The sentences below a node; those in the places of another one too, but not the pieces around the places."""
    match node:
        case None | ast.Compare():
            return
        case ast.Call(args=[_, ast.Constant(value=str() as thing)]) if _name(node) == "_count":
            yield from (f"1 {thing}", f"{{0}} {thing}s")
        case ast.Dict(values=values):
            for value in values:
                yield from _whole(value)
        case ast.JoinedStr(values=parts):
            yield from _literals(node)
            for part in parts:
                if isinstance(part, ast.FormattedValue):
                    yield from _whole(part.value)
        case ast.Constant():
            yield from _literals(node)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _whole(child)


@cache
def _error_classes() -> frozenset[str]:
    return frozenset(
        node.name
        for tree in ERROR_TREES
        for node in ast.walk(ast.parse((ROOT / tree).read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )


def _of_errors(path: Path) -> Iterator[str]:
    classes = _error_classes()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and _name(node) in classes and node.args:
            yield from _literals(node.args[0])


def _files(names: tuple[str, ...]) -> Iterator[Path]:
    for name in names:
        path = ROOT / name
        yield from sorted(path.rglob("*.py")) if path.is_dir() else (path,)


def _literals(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str() as text):
            yield text
        case ast.JoinedStr(values=parts):
            places = iter(range(len(parts)))
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else f"{{{next(places)}}}"
                for part in parts
            )
        case ast.IfExp(body=first, orelse=second):
            yield from _literals(first)
            yield from _literals(second)


def _name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


if __name__ == "__main__":
    known = json.loads((ROOT / "resources/i18n/de.json").read_text(encoding="utf-8"))
    sys.stdout.write(json.dumps(missing(known), indent=0, ensure_ascii=False) + "\n")
