"""The OpenAPI document, made of the routes' descriptions and of the wire types that bodies are checked by. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from studio.server.openapi.bodies import body_schemas, ref_of
from studio.server.openapi.operation import ErrorShape, Media, Operation, Tag
from studio.server.openapi.reply_schemas import ERRORS, STREAM
from studio.server.openapi.samples import samples_of

Json = dict[str, Any]
Route = tuple[str, str]
"""A method and a path, as the framework has it: "GET", "/v1/models/{name:path}"."""

_PARAMETER = re.compile(r"\{(\w+)(:\w+)?\}")
_FAILURES = {
    400: "Something in the request is wrong; the message names it, its value, the limit and the remedy.",
    401: "A key is needed, or the one given is wrong.",
    403: "The request comes from a foreign web page, or names another host.",
    404: "No such model, run or response.",
    409: "Not possible as things are set.",
    408: "The body did not come in time.",
    413: "The body is too large.",
    415: "The body is compressed.",
    429: "The key has as many requests under way as it may.",
    500: "Something failed here; the log says what.",
    503: "No model is ready, or others use it; Retry-After says when to ask again, where that is known.",
    529: "Others are in the way; ask again.",
}
_FOR_ALL = (403, 500)
_FOR_KEYS = (401,)
_FOR_BODIES = (400, 408, 413, 415, 429)
_HEADERS = {
    "x-request-id": {
        "description": "The request's id, as it was given or made up.",
        "schema": {"type": "string"},
    }
}
_SUCCESSES = {200: "The answer.", 202: "It will be done between two steps."}


def build_document(operations: Mapping[Route, Operation], version: str) -> Json:
    """All paths, with the types that they take."""
    bodies = body_schemas(each.body for each in operations.values() if each.body is not None)
    paths: dict[str, Json] = {}
    for (method, path), operation in operations.items():
        name = plain_path(path)
        described = _operation(method, name, operation)
        paths.setdefault(name, {})[method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Layby",
            "version": version,
            "description": "One local model, served to every program on this machine.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": tag.value} for tag in Tag],
        "security": [{}, {"bearer": []}, {"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
            "schemas": {**bodies, **ERRORS},
        },
    }


def plain_path(path: str) -> str:
    """The path as OpenAPI has it: "/v1/models/{name}"."""
    return _PARAMETER.sub(r"{\1}", path)


def _operation(method: str, path: str, operation: Operation) -> Json:
    described: Json = {
        "operationId": re.sub(r"\W+", "_", f"{method.lower()}{path}").strip("_"),
        "summary": operation.summary,
        "description": operation.words,
        "tags": [operation.tag.value],
        "responses": _responses(operation),
        "x-codeSamples": samples_of(method, path, operation.example),
    }
    if operation.is_open:
        described["security"] = []
    if parameters := _parameters(path, operation):
        described["parameters"] = parameters
    if operation.body is not None:
        content: Json = {"schema": {"$ref": ref_of(operation.body)}}
        if operation.example is not None:
            content["example"] = operation.example
        described["requestBody"] = {"required": True, "content": {"application/json": content}}
    return described


def _parameters(path: str, operation: Operation) -> list[Json]:
    in_path = [
        {"name": match[1], "in": "path", "required": True, "schema": {"type": "string"}}
        for match in _PARAMETER.finditer(path)
    ]
    in_query = [
        {"name": each.name, "in": "query", "schema": each.schema, "description": each.words}
        for each in operation.query
    ]
    return [*in_path, *in_query]


def _responses(operation: Operation) -> Json:
    content: Json = {operation.media.value: {"schema": operation.reply}}
    if operation.stream is not None:
        stream = {**STREAM, "description": operation.stream_words}
        content[operation.stream.value] = {"schema": stream}
    responses: Json = {}
    if operation.success is not None:
        responses[str(operation.success)] = {
            "description": _SUCCESSES[operation.success],
            "headers": _HEADERS,
            "content": content,
        }
    for status in _failures(operation):
        responses[str(status)] = _failure(status, operation.errors)
    if operation.not_ready is not None:
        content = {Media.JSON.value: {"schema": operation.not_ready}}
        responses["503"] = {"description": "It is not.", "content": content}
    return responses


def _failures(operation: Operation) -> list[int]:
    statuses = {*_FOR_ALL, *operation.failures}
    if not operation.is_open:
        statuses.update(_FOR_KEYS)
    if operation.body is not None:
        statuses.update(_FOR_BODIES)
    return sorted(statuses)


def _failure(status: int, shape: ErrorShape) -> Json:
    schema = {"$ref": f"#/components/schemas/{shape.value}"}
    return {
        "description": _FAILURES[status],
        "content": {Media.JSON.value: {"schema": schema}},
    }
