"""jinja2's immutable sandbox under a budget, with what Hugging Face's chat templates have.

Loops and macros count their rounds; whatever makes texts or lists is charged, where the result can
be longer than what goes in before it runs. An environment serves one compilation or one rendering.
Used on the intake thread. No torch.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Sized
from typing import Any

from jinja2 import ext, nodes
from jinja2.exceptions import SecurityError
from jinja2.filters import make_attrgetter
from jinja2.parser import Parser
from jinja2.runtime import Context, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from engine.text.template_budget import Budget

MAX_INDENT = 64

_FILTERS = frozenset(
    {
        "abs", "attr", "batch", "count", "d", "default", "dictsort", "first", "float", "groupby", "int",
        "items", "last", "length", "list", "map", "max", "min", "reject", "rejectattr", "reverse",
        "round", "select", "selectattr", "slice", "sort", "unique",
    }
)  # fmt: skip
"""The filters of jinja2's that are taken as they are."""
_PRINTING_FILTERS = frozenset(
    {
        "capitalize", "center", "e", "escape", "format", "indent", "lower", "safe", "title", "trim",
        "truncate", "upper", "urlencode", "wordcount",
    }
)  # fmt: skip
"""Those that turn what they get into a text first."""


class BoundedSandbox(ImmutableSandboxedEnvironment):
    """A template that does too much raises TemplateTooCostlyError."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, budget: Budget) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[ext.loopcontrols, GenerationBlock],
            finalize=self.printable,
        )
        self._budget = budget
        self.filters = {
            name: self._bounded(name, self.filters[name]) for name in _FILTERS | _PRINTING_FILTERS
        }
        self.filters |= {
            "join": self.join,
            "replace": self.replace,
            "string": self.as_text,
            "sum": self.sum,
            "tojson": self.tojson,
        }
        del self.globals["lipsum"]

    # Called by the generated code

    def count_round(self) -> None:
        """At the head of every loop's and macro's body."""
        self._budget.spend()

    def concat(self, texts: Iterable[str]) -> str:
        """The content of a macro or block, put together."""
        parts = list(texts)
        self._budget.spend_join(parts, "")
        return "".join(parts)

    def join_texts(self, *values: object) -> str:
        """The operator `~`."""
        return self.concat(map(self.as_text, values))

    def made(self, value: object) -> object:
        """A list, tuple or mapping that the template has put together, as it is.

        Charged as if printed, or a few of them, each holding the last one twice, would take for ever
        to print or compare.
        """
        self._budget.spend_print(value)
        return value

    def printable(self, value: object) -> object:
        """A value that is about to be printed, as it is."""
        if not isinstance(value, str):
            self._budget.spend_print(value)
        return value

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        match operator:
            case "%" if isinstance(left, str):
                self._budget.spend_format(left, right if isinstance(right, tuple) else (right,))
            case "+":
                self._budget.spend_sum(left, right)
            case "*":
                self._budget.spend_product(left, right)
            case "**":
                self._budget.spend_power(left, right)
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        subject = getattr(function, "__self__", None)
        if isinstance(subject, str):
            match function.__name__, args:
                case "translate", _:
                    raise SecurityError("str.translate is not for templates")
                case "join", (values,):
                    args = (list(values),)
                    self._budget.spend_join(args[0], subject)
                case "replace", (old, new, *_):
                    self._budget.spend_replace(subject, old, new)
                case name, _:
                    self._budget.spend_operation(name, subject, (*args, *kwargs.values()))
        return self._charged(super().call(context, function, *args, **kwargs))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        run = super().wrap_str_format(value)
        if run is None:
            return None

        def bounded(*args: Any, **kwargs: Any) -> str:
            self._budget.spend_format(value.__self__, (*args, *kwargs.values()))
            return run(*args, **kwargs)

        return bounded

    # Filters

    def as_text(self, value: object) -> str:
        """`value` as printed."""
        return str(self.printable(value))

    def join(self, value: Iterable[Any], d: object = "", attribute: Any = None) -> str:
        """jinja2's `join`, by its parameters."""
        if attribute is not None:
            value = map(make_attrgetter(self, attribute), value)
        texts = [self.as_text(item) for item in value]
        separator = self.as_text(d)
        self._budget.spend_join(texts, separator)
        return separator.join(texts)

    def replace(self, s: object, old: object, new: object, count: int = -1) -> str:
        """jinja2's `replace`, by its parameters."""
        text, old, new = self.as_text(s), self.as_text(old), self.as_text(new)
        self._budget.spend_replace(text, old, new)
        return text.replace(old, new, count)

    def sum(self, value: Iterable[Any], attribute: Any = None, start: Any = 0) -> Any:
        """jinja2's `sum`, by its parameters."""
        if attribute is not None:
            value = map(make_attrgetter(self, attribute), value)
        for item in value:
            self._budget.spend_sum(start, item)
            start = start + item
        return start

    def tojson(
        self,
        x: object,
        ensure_ascii: bool = False,
        indent: int | str | None = None,
        separators: tuple[str, str] | None = None,
        *,
        sort_keys: bool = False,
    ) -> str:
        """Hugging Face's `tojson`, by its parameters: no HTML escapes."""
        width = len(indent) if isinstance(indent, str) else indent or 0
        if width > MAX_INDENT:
            raise SecurityError(f"tojson indents by {width}, the limit is {MAX_INDENT}")
        encoder = json.JSONEncoder(
            ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )
        parts = []
        for part in encoder.iterencode(x):
            self._budget.spend(len(part))
            parts.append(part)
        return "".join(parts)

    def _bounded(self, name: str, run: Callable[..., Any]) -> Callable[..., Any]:
        """One of jinja2's own filters. Some take the context before the value."""
        skipped = 1 if hasattr(run, "jinja_pass_arg") else 0

        @functools.wraps(run)
        def bounded(*args: Any, **kwargs: Any) -> Any:
            subject, *rest = *args[skipped:], *kwargs.values()
            if name in _PRINTING_FILTERS:
                self.printable(subject)
            if name == "format":
                self._budget.spend_format(str(subject), rest)
            self._budget.spend_operation(name, subject, rest)
            return self._charged(run(*args, **kwargs))

        return bounded

    def _charged(self, result: Any) -> Any:
        if isinstance(result, Sized):
            self._budget.spend(len(result))
        return result

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        _Instrument().visit(tree)
        return tree


class GenerationBlock(ext.Extension):
    """{% generation %} marks what an assistant wrote, for training; here its content just stands."""

    tags = {"generation"}  # noqa: RUF012 - declared so by jinja2

    def parse(self, parser: Parser) -> nodes.Node:
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("content"), [], [], body).set_lineno(lineno)

    def content(self, caller: Macro) -> str:
        return caller()


class _Instrument(NodeTransformer):
    """Puts `count_round` into loops and macros, `made` around lists; `~` becomes `join_texts`."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        return self._counted(node)

    def visit_Macro(self, node: nodes.Macro) -> nodes.Node:
        return self._counted(node)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _call("join_texts", *node.nodes)

    def visit_List(self, node: nodes.List) -> nodes.Node:
        self.generic_visit(node)
        return _call("made", node)

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:
        self.generic_visit(node)
        return _call("made", node)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:
        self.generic_visit(node)
        return _call("made", node) if node.ctx == "load" else node

    def _counted(self, node: nodes.For | nodes.Macro) -> nodes.Node:
        self.generic_visit(node)
        node.body.insert(0, nodes.ExprStmt(_call("count_round")).set_lineno(node.lineno))
        return node


def _call(method: str, *arguments: nodes.Expr) -> nodes.Call:
    """A call of a method of the environment."""
    function = nodes.EnvironmentAttribute(method)
    lineno = arguments[0].lineno if arguments else 0
    return nodes.Call(function, list(arguments), [], None, None, lineno=lineno)
