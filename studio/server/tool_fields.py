"""Tools on the wire: functions that a model may call, the calls it made, and which it must make -> the engine's words.

`read_…` take what JSON gave and raise `wrong_value` about it, so that they serve as pydantic validators (the reader of
the body puts the field's name before the message); `offer` knows several fields and names the wrong one itself. The
shapes are OpenAI's; routes with other shapes build on `read_tool_list`, `tool_at`, `make_call` and `ToolOffer`.
Any thread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.api import Tool, ToolCall, ToolChoice
from engine.errors import InvalidRequest
from studio.server.wire import wrong_value

MAX_TOOLS = 512
MAX_CALLS = 512
MAX_NAME_CHARS = 128
MAX_ID_CHARS = 256
MAX_SCHEMA_CHARS = 1 << 18
MAX_OPTIONS = 64
MAX_DEPTH = 64
"""Lists and objects in one another, in a schema or in arguments; templates and grammars walk them recursively."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]*")
_NAME_WORDS = "letters, digits and _ - . : /, beginning with one of the first three"

_TAKEN_OPTIONS = frozenset(
    {"messages", "tools", "add_generation_prompt", "continue_final_message", "raise_exception"}
)
"""Variables of templates that options must not take the place of."""

Choice = tuple[ToolChoice, str]
"""How tools are chosen, and the name of the one that must be called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedTools:
    """A choice among some of the tools: the same as offering only these."""

    kind: ToolChoice
    names: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOffer:
    """What the wire says about tools, checked as a whole: the fields of the same names in `engine.api.Chat`."""

    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice.AUTO
    tool_name: str = ""
    calls_in_parallel: bool = True


def offer(
    tools: Sequence[Tool],
    choice: Choice | AllowedTools | None,
    *,
    calls_in_parallel: bool | None = None,
    choice_field: str = "tool_choice",
) -> ToolOffer:
    """Tools and choice together.

    Raises InvalidRequest, naming `choice_field`, for a call that must be made of a tool that is not there, and for one
    that is allowed and not there.
    """
    if isinstance(choice, AllowedTools):
        tools, choice = _allowed(tools, choice.names, choice_field), (choice.kind, "")
    kind, name = choice or (ToolChoice.AUTO, "")
    if kind is ToolChoice.NAMED and name not in {tool.name for tool in tools}:
        raise InvalidRequest(
            f"{choice_field} names the tool {name!r}, which is not among tools; offer it or name another",
            param=choice_field,
        )
    if kind is ToolChoice.REQUIRED and not tools:
        raise InvalidRequest(
            f"{choice_field} asks for a call and there are no tools; send tools or leave it out",
            param=choice_field,
        )
    return ToolOffer(
        tools=tuple(tools),
        tool_choice=kind,
        tool_name=name,
        calls_in_parallel=calls_in_parallel is not False,
    )


def _allowed(tools: Sequence[Tool], names: frozenset[str], field: str) -> list[Tool]:
    unknown = names - {tool.name for tool in tools}
    if unknown:
        raise InvalidRequest(
            f"{field} allows the tool {min(unknown)!r}, which is not among tools; offer it or leave it out",
            param=field,
        )
    return [tool for tool in tools if tool.name in names]


# --- what routes of other shapes build on


def make_tool(name: object, description: object, schema: object, *, is_strict: object) -> Tool:
    """One tool from its parts; `schema` is the JSON schema of its arguments as an object, or None."""
    return Tool(
        name=read_name("name", name),
        description=_text("description", description, most=MAX_SCHEMA_CHARS),
        parameters=_schema(schema),
        is_strict=_flag("strict", is_strict),
    )


def tool_at(place: str, value: dict[str, Any], *, schema: object) -> Tool:
    """The same of an object with `name`, `description` and `strict`; errors name its place in the list, too."""
    try:
        return make_tool(
            value.get("name"),
            value.get("description"),
            schema,
            is_strict=value.get("strict"),
        )
    except ValueError as error:  # wrong_value is one
        raise wrong_value(f"at {place} {error}") from None


def make_call(call_id: object, name: object, arguments: object) -> ToolCall:
    """One call of an earlier turn; `arguments` is a JSON object or text; nothing is an empty object.

    The text need not be JSON: a call that was cut off is in the history like any other.
    """
    return ToolCall(
        call_id=_text("id", call_id, most=MAX_ID_CHARS),
        name=read_name("name", name),
        arguments=_arguments(arguments),
    )


def read_name(field: str, value: object) -> str:
    """A tool's name."""
    if not isinstance(value, str):
        raise wrong_value(f"has no string as its {field}")
    if len(value) > MAX_NAME_CHARS:
        raise wrong_value(
            f"has a {field} of {len(value)} characters, the limit is {MAX_NAME_CHARS}"
        )
    if not _NAME.fullmatch(value):
        raise wrong_value(f"has the {field} {value!r}, allowed are {_NAME_WORDS}")
    return value


def distinct(tools: list[Tool]) -> tuple[Tool, ...]:
    """All of them, if no two have the same name."""
    names: set[str] = set()
    for tool in tools:
        if tool.name in names:
            raise wrong_value(f"has two tools of the name {tool.name!r}; give each its own")
        names.add(tool.name)
    return tuple(tools)


# --- OpenAI's shapes


def read_tools(value: object) -> tuple[Tool, ...]:
    """`[{"type": "function", "function": {"name": …}}]`; null and an empty list are no tools."""
    return read_tool_list(value, _read_tool)


def read_tool_list(value: object, read: Callable[[str, object], Tool]) -> tuple[Tool, ...]:
    """Every entry by `read`, which is given its place for messages; null and an empty list are no tools."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise wrong_value("is no list of tools")
    return distinct([read(f"[{i}]", tool) for i, tool in enumerate(_few(value, MAX_TOOLS))])


def read_choice(value: object) -> Choice | AllowedTools | None:
    """A word, or `{"type": "function", "function": {"name": …}}`, or one of `allowed_tools`; None: nothing is said."""
    if value is None:
        return None
    if isinstance(value, str):
        for kind in (ToolChoice.NONE, ToolChoice.AUTO, ToolChoice.REQUIRED):
            if value == kind.value:
                return kind, ""
        raise wrong_value(
            f"is {value[:40]!r}, allowed are none, auto, required and an object that names a function"
        )
    if isinstance(value, dict) and value.get("type") == "allowed_tools":
        return _read_allowed(_object("allowed_tools", value.get("allowed_tools")))
    if not isinstance(value, dict) or value.get("type") != "function":
        raise wrong_value(
            'is neither a word nor an object like {"type": "function", "function": {"name": "..."}}'
        )
    return ToolChoice.NAMED, read_name(
        "name", _object("function", value.get("function")).get("name")
    )


def _read_allowed(value: dict[str, Any]) -> AllowedTools:
    mode, tools = value.get("mode"), value.get("tools")
    if mode not in ("auto", "required"):
        raise wrong_value(f"has the mode {mode!r:.40}, allowed are auto and required")
    if not isinstance(tools, list) or not tools:
        raise wrong_value("has no list of tools with at least one")
    functions = [
        _object("function", _object("tool", tool).get("function"))
        for tool in _few(tools, MAX_TOOLS)
    ]
    names = frozenset(read_name("name", function.get("name")) for function in functions)
    return AllowedTools(kind=ToolChoice(mode), names=names)


def read_calls(value: object) -> tuple[ToolCall, ...]:
    """An assistant's `tool_calls`; arguments may be an object as well as its text."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise wrong_value("is no list of calls")
    return tuple(_read_call(index, call) for index, call in enumerate(_few(value, MAX_CALLS)))


def read_template_options(value: object) -> tuple[tuple[str, object], ...]:
    """`chat_template_kwargs`: variables of the chat template, by name."""
    if value is None:
        return ()
    if not isinstance(value, dict):
        raise wrong_value('is no object like {"enable_thinking": false}')
    if len(value) > MAX_OPTIONS:
        raise wrong_value(f"has {len(value)} entries, the limit is {MAX_OPTIONS}")
    wrong = next((name for name in value if not name.isidentifier()), None)
    if wrong is not None:
        raise wrong_value(f"has the name {wrong[:40]!r}, which no template can read")
    taken = _TAKEN_OPTIONS.intersection(value)
    if taken:
        raise wrong_value(f"has {min(taken)!r}, which has a field of its own or is Layby's matter")
    _check_depth(value)
    return tuple(value.items())


def wire_call(call: ToolCall) -> dict[str, Any]:
    """The call as an entry of `tool_calls`."""
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.call_id, "type": "function", "function": function}


# --- parts


def _read_tool(place: str, value: object) -> Tool:
    if not isinstance(value, dict):
        raise wrong_value(f"has at {place} no object")
    kind = value.get("type", "function")
    if kind != "function":
        raise wrong_value(f"has at {place} a tool of type {kind!r:.40}; only function is served")
    return _read_function(f"{place}.function", value.get("function"))


def _read_function(place: str, value: object) -> Tool:
    if not isinstance(value, dict):
        raise wrong_value(
            f'has at {place} no object; send one like {{"name": "get_weather", "parameters": {{...}}}}'
        )
    return tool_at(place, value, schema=value.get("parameters"))


def _read_call(index: int, value: object) -> ToolCall:
    try:
        call = _object("entry", value)
        if call.get("type", "function") != "function":
            raise wrong_value(f"is of type {call['type']!r:.40}; only function is known")
        function = _object("function", call.get("function"))
        return make_call(call.get("id"), function.get("name"), function.get("arguments"))
    except ValueError as error:
        raise wrong_value(f"at [{index}] {error}") from None


def _few(values: list[object], most: int) -> list[object]:
    if len(values) > most:
        raise wrong_value(f"has {len(values)} entries, the limit is {most}")
    return values


def _object(field: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong_value(f"has no object as its {field}")
    return value


def _text(field: str, value: object, *, most: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise wrong_value(f"has {value!r:.40} as its {field}, which is no string")
    if len(value) > most:
        raise wrong_value(f"has a {field} of {len(value)} characters, the limit is {most}")
    return value


def _flag(field: str, value: object) -> bool:
    if value is not None and not isinstance(value, bool):
        raise wrong_value(f"has {value!r:.40} as its {field}, which is neither true nor false")
    return value is True


def _schema(value: object) -> str:
    if value is None:
        return "{}"
    if not isinstance(value, dict):
        raise wrong_value("has parameters that are no JSON schema; send an object")
    if value.get("type", "object") != "object":
        raise wrong_value(f"has parameters of type {value['type']!r:.40}; arguments are an object")
    _check_depth(value)
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > MAX_SCHEMA_CHARS:
        raise wrong_value(
            f"has parameters of {len(text)} characters, the limit is {MAX_SCHEMA_CHARS}"
        )
    return text


def _arguments(value: object) -> str:
    if isinstance(value, dict):
        _check_depth(value)
        return json.dumps(value, ensure_ascii=False)
    if value is None or (isinstance(value, str) and not value.strip()):
        return "{}"
    if not isinstance(value, str):
        raise wrong_value(
            f"has {value!r:.40} as its arguments, which is neither text nor an object"
        )
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return value
    if isinstance(parsed, dict):
        _check_depth(parsed)
    return value


def _check_depth(value: object) -> None:
    layer = [value]
    for _ in range(MAX_DEPTH):
        layer = [child for each in layer for child in _children(each)]
        if not layer:
            return
    raise wrong_value(f"has lists and objects in one another more than {MAX_DEPTH} deep")


def _children(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
