"""The OpenAPI document as a page to read: one file, nothing from elsewhere, searchable. Pure; any thread."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from studio.server.openapi.schema_words import fields_of, words_of

Json = dict[str, Any]

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0; display: flex; }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; width: 20em; flex: none; padding: 1em;
  box-sizing: border-box; border-right: 1px solid var(--line); }
nav a { display: block; text-decoration: none; color: inherit; padding: 1px 4px; border-radius: 4px; }
nav a:hover, nav a:focus { background: var(--soft); }
main { padding: 1em 2em; max-width: 60em; min-width: 0; }
input { width: 100%; box-sizing: border-box; font: inherit; padding: 4px 8px; margin-bottom: 8px; }
section { border-top: 1px solid var(--line); padding: 1em 0; }
code, pre, .method { font-family: ui-monospace, monospace; font-size: 13px; }
pre { background: var(--soft); padding: 8px 12px; overflow: auto; border-radius: 6px; }
.method { font-weight: 700; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: 3px 12px 3px 0; border-bottom: 1px solid var(--soft); }
[hidden] { display: none; }
@media (max-width: 50em) { body { display: block; } nav { position: static; height: auto; width: auto; } }
"""
_SCRIPT = """
const box = document.getElementById("find");
box.addEventListener("input", () => {
  const words = box.value.toLowerCase().split(/\\s+/).filter(Boolean);
  for (const part of document.querySelectorAll("[data-text]")) {
    part.hidden = !words.every((word) => part.dataset.text.includes(word));
  }
});
"""


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


POLICY = (
    f"default-src 'none'; style-src {_hash(_STYLE)}; script-src {_hash(_SCRIPT)}; base-uri 'none'"
)
"""The page's Content-Security-Policy: its own style and script, and nothing else."""


def build_page(document: Json) -> str:
    """The whole page."""
    schemas = document["components"]["schemas"]
    tags = [tag["name"] for tag in document["tags"]]
    operations = [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    links, parts = [], []
    for tag in tags:
        of_tag = [each for each in operations if each[2]["tags"] == [tag]]
        links.append(f"<h3>{escape(tag)}</h3>{''.join(map(_link, of_tag))}")
        parts.append(f"<h2>{escape(tag)}</h2>")
        parts += [_section(each, schemas) for each in of_tag]
    types = "".join(_type(name, schema) for name, schema in schemas.items())
    info = document["info"]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])} API</title><style>{_STYLE}</style></head><body>"
        f'<nav aria-label="Routes"><h1>{escape(info["title"])}</h1>'
        '<label for="find">Find</label><input id="find" type="search" autocomplete="off">'
        f"{''.join(links)}</nav><main><p>{escape(info['description'])} "
        'As <a href="/openapi.json">OpenAPI document</a>.</p>'
        f"{''.join(parts)}<h2>Types</h2>{types}</main><script>{_SCRIPT}</script></body></html>"
    )


def _link(each: tuple[str, str, Json]) -> str:
    method, path, operation = each
    text = escape(_search_text(each), quote=True)
    return (
        f'<a href="#{escape(operation["operationId"])}" data-text="{text}">'
        f'<span class="method">{method.upper()}</span> {escape(path)}</a>'
    )


def _section(each: tuple[str, str, Json], schemas: Mapping[str, Json]) -> str:
    method, path, operation = each
    text = escape(_search_text(each), quote=True)
    return (
        f'<section id="{escape(operation["operationId"])}" data-text="{text}">'
        f'<h3><span class="method">{method.upper()}</span> <code>{escape(path)}</code></h3>'
        f"<p><b>{escape(operation['summary'])}.</b> {escape(operation['description'])}</p>"
        f"{_parameters(operation)}{_body(operation, schemas)}{_answers(operation)}"
        f"{_samples(operation)}</section>"
    )


def _search_text(each: tuple[str, str, Json]) -> str:
    method, path, operation = each
    return f"{method} {path} {operation['summary']} {operation['description']}".lower()


def _parameters(operation: Json) -> str:
    rows = [
        (each["name"], f"{each['in']}, {words_of(each['schema'])}", each.get("description", ""))
        for each in operation.get("parameters", ())
    ]
    return _table("Parameters", rows)


def _body(operation: Json, schemas: Mapping[str, Json]) -> str:
    if "requestBody" not in operation:
        return ""
    content = operation["requestBody"]["content"]["application/json"]
    name = content["schema"]["$ref"].rpartition("/")[2]
    return _table("Body", fields_of(schemas[name]))


def _answers(operation: Json) -> str:
    rows = []
    for status, response in operation["responses"].items():
        for media, content in response["content"].items():
            schema = content["schema"]
            words = f"{response['description']} {schema.get('description', '')}"
            rows.append((status, f"{media}: {words_of(schema)}", words.strip()))
    return _table("Answers", rows)


def _samples(operation: Json) -> str:
    return "".join(
        f"<h4>{escape(sample['label'])}</h4><pre>{escape(sample['source'])}</pre>"
        for sample in operation["x-codeSamples"]
    )


def _type(name: str, schema: Json) -> str:
    text = escape(f"{name} {json.dumps(sorted(schema.get('properties', ())))}".lower(), quote=True)
    return (
        f'<section id="{escape(name)}" data-text="{text}"><h3>{escape(name)}</h3>'
        f"<p>{escape(schema.get('description', ''))}</p>{_table('', fields_of(schema))}</section>"
    )


def _table(title: str, rows: Iterable[tuple[str, str, str]]) -> str:
    lines = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(kind)}</td><td>{escape(words)}</td></tr>"
        for name, kind, words in rows
    )
    if not lines:
        return ""
    heading = f"<h4>{escape(title)}</h4>" if title else ""
    return f"{heading}<table>{lines}</table>"
