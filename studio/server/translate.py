"""Wire requests -> engine requests, one for each choice that a wire request asks for.

Server thread. Raises InvalidRequest, naming the field, before anything is queued.
"""

from __future__ import annotations

from dataclasses import replace

from engine.api import (
    EngineSnapshot,
    EngineState,
    ModelInfo,
    Origin,
    Prompt,
    Request,
    RequestGroup,
    SamplingParams,
)
from engine.errors import EngineStopped, InvalidRequest, ModelNotFound, ModelUnavailable
from studio.server.errors import LOADING_RETRY_S
from studio.server.protocol import (
    ChatCompletionRequest,
    GenerationFields,
    SamplingFields,
)

MAX_TOTAL_CHOICES = 128

_SAMPLING_FIELDS = frozenset(SamplingFields.model_fields)
_OTHER_NAMES = {"repeat_penalty": "repetition_penalty", "repeat_last_n": "penalty_last_n"}

_UNAVAILABLE = {
    EngineState.NO_MODEL: "no model is loaded; load one in the window or start with `layby serve -m MODEL`",
    EngineState.LOADING: "the model is still loading; ask again in a moment",
    EngineState.FAILED: "the model could not be loaded; load another one",
}


def served_model(snapshot: EngineSnapshot, name: str | None) -> ModelInfo:
    """The loaded model, if `name` means it: empty, its name, its path or its file's name, in any case of letters.

    Raises ModelUnavailable when none is ready, ModelNotFound when `name` means another one.
    """
    if snapshot.state is EngineState.STOPPED:
        raise EngineStopped("the engine has shut down; start Layby again")
    model = snapshot.model
    if snapshot.state is not EngineState.READY or model is None:
        raise ModelUnavailable(
            _UNAVAILABLE.get(snapshot.state, _UNAVAILABLE[EngineState.NO_MODEL]),
            retry_after_s=LOADING_RETRY_S if snapshot.state is EngineState.LOADING else None,
        )
    names = {model.name, str(model.path), model.path.name, model.path.name.removesuffix(".gguf")}
    if name and name.lower() not in {each.lower() for each in names}:
        raise ModelNotFound(
            f"the model {name[:200]!r} is not loaded; {model.name!r} is, or leave the name out"
        )
    return model


def chat_requests(wire: ChatCompletionRequest, reply_id: str) -> tuple[Request, ...]:
    """One engine request per choice."""
    if wire.top_logprobs is not None and not wire.logprobs:
        raise InvalidRequest(
            "top_logprobs needs logprobs to be true; set it or leave both out", param="top_logprobs"
        )
    logprobs = (wire.top_logprobs or 0) if wire.logprobs else None
    template = request_of(wire, reply_id, wire.chat(), logprobs=logprobs)
    template = replace(template, tells_parts=True)
    if wire.max_completion_tokens is not None:
        template = replace(template, max_tokens=wire.max_completion_tokens)
    return choices_of(template, (template.prompt,), wire.n or 1)


def request_of(
    wire: GenerationFields,
    reply_id: str,
    prompt: Prompt,
    *,
    logprobs: int | None,
    tells_prompt: bool = False,
) -> Request:
    """What all choices of a wire request share; also the place where the engine checks every bound."""
    return Request(
        request_id=reply_id,
        origin=Origin.API,
        prompt=prompt,
        sampling=sampling_params(wire, logprobs=logprobs),
        max_tokens=wire.max_tokens,
        stop=tuple(wire.stop or ()),
        min_tokens=wire.min_tokens or 0,
        stop_ids=tuple(wire.stop_token_ids or ()),
        tells_prompt=tells_prompt,
        grammar=wire.wanted_grammar,
        ignore_eos=bool(wire.ignore_eos),
        max_wait_s=wire.max_wait,
    )


def sampling_params(wire: SamplingFields, *, logprobs: int | None) -> SamplingParams:
    """What the wire gives, and the engine's defaults. Raises InvalidRequest for a value out of bounds."""
    given = wire.model_dump(include=set(_SAMPLING_FIELDS), exclude_none=True)
    other_names = {}
    for other, name in _OTHER_NAMES.items():
        value = given.pop(other, None)
        if value is not None and name not in given:
            given[name], other_names[name] = value, other
    if "dry_sequence_breakers" in given:
        given["dry_sequence_breakers"] = tuple(given["dry_sequence_breakers"])
    try:
        return SamplingParams(**given, logprobs=logprobs)
    except InvalidRequest as error:
        sent = other_names.get(error.param or "")
        if sent is None:
            raise
        message = str(error).replace(str(error.param), sent, 1)
        raise InvalidRequest(message, param=sent) from None


def choices_of(
    template: Request, prompts: tuple[Prompt, ...], choices_per_prompt: int
) -> tuple[Request, ...]:
    """A request for each prompt and choice, all asked together."""
    size = len(prompts) * choices_per_prompt
    group = RequestGroup(group_id=template.request_id, size=size) if size > 1 else None
    requests: list[Request] = []
    for prompt in prompts:
        for choice in range(choices_per_prompt):
            requests.append(
                replace(
                    template,
                    request_id=f"{template.request_id}-{len(requests)}",
                    prompt=prompt,
                    group=group,
                    sampling=_with_seed_of_choice(template.sampling, choice),
                )
            )
    return tuple(requests)


def _with_seed_of_choice(sampling: SamplingParams, choice: int) -> SamplingParams:
    """Choices of one prompt differ, and each is repeatable: choice i has the seed given plus i."""
    if sampling.seed is None or choice == 0:
        return sampling
    seed = sampling.seed + choice
    return replace(sampling, seed=seed if seed < 1 << 64 else seed - (1 << 64))
