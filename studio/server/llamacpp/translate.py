"""llama-server's requests -> the engine's. Server thread.

Raises InvalidRequest, naming the field, before anything is queued.
"""

from __future__ import annotations

from engine.api import Infill, Origin, Prompt, Request, Text
from studio.server.framing import Json
from studio.server.llamacpp.fields import CompletionFields, InfillRequest, LlamaCompletionRequest
from studio.server.structured import only_one
from studio.server.translate import sampling_params


def text_prompt(wire: LlamaCompletionRequest) -> Prompt | None:
    """The prompt, where it is text alone; None: it has token ids, and is to be tokenised with them first.

    Clients of this path apply templates themselves, so control tokens spelled out are meant.
    """
    if not wire.prompt:
        return Text(text="")
    first, *rest = wire.prompt
    if rest or not isinstance(first, str):
        return None
    return Text(text=first, reads_control=True)


def infill_prompt(wire: InfillRequest) -> Infill:
    """Texts of other files stand before it, each under the file's name."""
    extra = "".join(
        f"# {each.filename or 'snippet'}\n{each.text}\n\n" for each in wire.input_extra or ()
    )
    before = wire.input_prefix + (wire.prompt or "")
    return Infill(before=before, after=wire.input_suffix, context=extra)


def completion_request(wire: CompletionFields, reply_id: str, prompt: Prompt) -> Request:
    """One engine request."""
    limit = wire.n_predict
    return Request(
        request_id=f"{reply_id}-0",
        origin=Origin.API,
        prompt=prompt,
        sampling=sampling_params(wire, logprobs=wire.n_probs or None),
        max_tokens=limit if limit is not None and limit >= 0 else None,
        stop=tuple(wire.stop or ()),
        ignore_eos=bool(wire.ignore_eos),
        max_wait_s=wire.max_wait,
        grammar=only_one(wire.json_schema, wire.grammar),
    )


def generation_settings(wire: CompletionFields, request: Request) -> Json:
    """What the request comes down to, by the names of this protocol; which seed it drew its usage tells."""
    sampling = request.sampling
    limit = -1 if request.max_tokens is None else request.max_tokens
    grammar = wire.grammar.source if wire.grammar is not None else ""
    return {
        "n_predict": limit,
        "max_tokens": limit,
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "typical_p": sampling.typical_p,
        "repeat_penalty": sampling.repetition_penalty,
        "repeat_last_n": sampling.penalty_last_n,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "dry_multiplier": sampling.dry_multiplier,
        "dry_base": sampling.dry_base,
        "dry_allowed_length": sampling.dry_allowed_length,
        "dry_penalty_last_n": sampling.dry_penalty_last_n,
        "dry_sequence_breakers": list(sampling.dry_sequence_breakers),
        "logit_bias": [{"token": token, "bias": bias} for token, bias in sampling.logit_bias],
        "n_probs": sampling.logprobs or 0,
        "stop": list(request.stop),
        "ignore_eos": request.ignore_eos,
        "grammar": grammar,
        "stream": bool(wire.stream),
    }
