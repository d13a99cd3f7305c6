"""POST /v1/completions: its wire type, and what becomes of it.

Server thread. Raises InvalidRequest, naming the field, before anything is queued.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from engine.api import Infill, Prompt, Request, Text, TokenIds
from engine.errors import InvalidRequest
from studio.server import prompt_fields
from studio.server.prompt_fields import MAX_PROMPTS, prompts_schema, read_prompts
from studio.server.protocol import MAX_CHOICES, GenerationFields
from studio.server.translate import MAX_TOTAL_CHOICES, choices_of, request_of


def _read_prompts(value: object) -> tuple[prompt_fields.Prompt, ...]:
    """No prompt is an empty one."""
    return ("",) if value is None else read_prompts(value)


class CompletionRequest(GenerationFields):
    """POST /v1/completions. `prompts` is the wire's `prompt`, always a tuple of prompts; an empty one begins a text."""

    prompts: Annotated[
        tuple[prompt_fields.Prompt, ...],
        BeforeValidator(_read_prompts),
        WithJsonSchema({"anyOf": [prompts_schema(MAX_PROMPTS), {"type": "null"}]}),
    ] = Field(validation_alias="prompt")
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: bool | None = None
    suffix: str | None = None
    best_of: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None

    @property
    def told_per_prompt(self) -> int:
        return self.n or 1

    @property
    def tried_per_prompt(self) -> int:
        return self.best_of or self.told_per_prompt

    @property
    def scores_prompt(self) -> bool:
        return bool(self.echo) and self.logprobs is not None


def completion_requests(wire: CompletionRequest, reply_id: str) -> tuple[Request, ...]:
    """One engine request per prompt and choice that is tried, the choices of a prompt side by side."""
    tried = wire.tried_per_prompt
    _check_best_of(wire)
    total = len(wire.prompts) * tried
    if total > MAX_TOTAL_CHOICES:
        raise InvalidRequest(
            f"{len(wire.prompts)} prompts with n {tried} make {total} choices, "
            f"the limit is {MAX_TOTAL_CHOICES}; send fewer at once",
            param="n",
        )
    prompts = tuple(_engine_prompt(prompt, wire.suffix) for prompt in wire.prompts)
    logprobs = wire.logprobs
    if logprobs is None and tried > wire.told_per_prompt:
        logprobs = 0  # to find the likeliest
    template = request_of(
        wire, reply_id, prompts[0], logprobs=logprobs, tells_prompt=wire.scores_prompt
    )
    return choices_of(template, prompts, tried)


def _check_best_of(wire: CompletionRequest) -> None:
    if wire.tried_per_prompt < wire.told_per_prompt:
        raise InvalidRequest(
            f"best_of is {wire.best_of} and n is {wire.n}: the best of fewer than are wanted; "
            "raise best_of or leave it out",
            param="best_of",
        )
    if wire.tried_per_prompt > wire.told_per_prompt and wire.stream:
        raise InvalidRequest(
            "best_of cannot be streamed: which is best shows only at the end; leave out stream or best_of",
            param="best_of",
        )


def _engine_prompt(prompt: prompt_fields.Prompt, suffix: str | None) -> Prompt:
    if suffix:
        if not isinstance(prompt, str):
            raise InvalidRequest(
                "suffix needs a prompt of text, not of token ids; send text or leave it out",
                param="suffix",
            )
        return Infill(before=prompt, after=suffix)
    if not prompt:
        return Text(text="", begins_anew=True)
    return Text(text=prompt) if isinstance(prompt, str) else TokenIds(ids=prompt)
