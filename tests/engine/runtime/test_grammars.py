"""The real engine on a tiny model: replies match their grammar, whatever happens to them on the way."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import (
    Chat,
    ChatMessage,
    Failed,
    Finished,
    FinishReason,
    Grammar,
    GrammarKind,
    LoadModel,
    LoadOptions,
    Parked,
    RequestGroup,
    SamplingParams,
    TokenDelta,
)
from engine.factory import create_engine
from engine.runtime.disk.state_folder import SUFFIX
from engine.runtime.engine import Engine
from fakes.disk_rig import ID, LONG, comeback, command_at, park, resumed, wait_on_disk
from fakes.grammar_asks import JSON, asked, finished, gbnf, lark, regex
from fakes.listening import Ear, run_all, submit_together
from fakes.native_rig import needs_kernels
from fakes.parking_rig import ask, load, tokens_alone
from fakes.tiny_files import EOS_ID, UNKNOWN_ID

ENDS = (UNKNOWN_ID, EOS_ID)
"""Both end a reply of the tiny model."""
LONG_WORD = Grammar(kind=GrammarKind.REGEX, source="[a-z]{90,120}")
"""So many tokens or some less: longer than what the pool of these tests takes of four."""
VARIANTS = ["torch", pytest.param("native", marks=needs_kernels)]


def first_top(ear: Ear, request_id: str) -> list[tuple[int, float]]:
    """What the model thought likeliest for the first token."""
    event = next(event for event in ear.of(request_id) if isinstance(event, TokenDelta))
    return [(one.token_id, one.logprob) for one in event.logprobs[0].top]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("temperature", [0.0, 0.8, 5.0])
def test_a_reply_is_the_json_that_its_schema_asks_for(
    engine: Engine, model_path: Path, variant: str, temperature: float
) -> None:
    load(engine, model_path, pool_tokens=LONG, cpu_variant=variant)
    sampling = [SamplingParams(temperature=temperature, seed=seed) for seed in range(6)]
    requests = [
        asked(f"r{n}", JSON, sampling=one, max_tokens=450) for n, one in enumerate(sampling)
    ]
    ear = run_all(engine, requests)
    for request in requests:
        end = finished(ear, request.request_id)
        assert end.reason is FinishReason.STOP, ear.text(request.request_id)
        value = json.loads(ear.text(request.request_id))
        assert list(value) == ["name", "age", "tags"]
        assert 0 <= value["age"] <= 999
        assert ear.tokens(request.request_id)[-1] in ENDS


WAYS_TO_SAMPLE = {
    "greedy": SamplingParams(temperature=0.0),
    "all kept": SamplingParams(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0),
    "typical": SamplingParams(typical_p=0.8),
    "penalties": SamplingParams(repetition_penalty=1.3, frequency_penalty=0.5, dry_multiplier=0.8),
    "logprobs": SamplingParams(logprobs=3),
    "biased": SamplingParams(logit_bias=((5, 100.0), *((token_id, -100.0) for token_id in ENDS))),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("way", WAYS_TO_SAMPLE)
def test_a_grammar_goes_with_every_way_to_sample(
    engine: Engine, model_path: Path, variant: str, way: str
) -> None:
    load(engine, model_path, pool_tokens=LONG, cpu_variant=variant)
    sampling = replace(WAYS_TO_SAMPLE[way], seed=4)
    ear = run_all(engine, [asked("r", regex("[0-9a-f]{20}(ing|and)?!"), sampling=sampling)])
    end = ear.wait_end("r")
    assert re.fullmatch("[0-9a-f]{20}(ing|and)?!", ear.text("r"))
    if way == "biased":  # nothing but the end may come, and that is forbidden
        assert isinstance(end, Failed)
        assert "logit_bias forbids every token" in str(end.error)
    else:
        assert isinstance(end, Finished)
        assert end.reason is FinishReason.STOP


@needs_kernels
@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_the_likeliest_allowed_token_is_taken_and_logprobs_are_the_models_own(
    engine: Engine, model_path: Path, temperature: float
) -> None:
    load(engine, model_path, pool_tokens=LONG, cpu_variant="native")
    sampling = SamplingParams(temperature=temperature, seed=3)
    plain = asked("plain", regex("[0-9]{30}"), sampling=sampling)
    told = replace(plain, request_id="told", sampling=replace(sampling, logprobs=20))
    told = replace(told, prompt=plain.prompt)
    ear = run_all(engine, [plain, told])
    assert ear.tokens("told") == ear.tokens("plain")
    free = run_all(engine, [replace(told, request_id="free", grammar=None, max_tokens=1)])
    assert first_top(ear, "told") == first_top(free, "free")


@pytest.mark.parametrize(
    ("source", "pattern"),
    [
        ('root ::= [0-9]{2,4} ("," [a-c]+)? "."', r"[0-9]{2,4}(,[a-c]+)?\."),
        ('root ::= "(" root ")" | [xy]', r"\(*[xy]\)*"),
        # read greedily, the letters would leave no "end"
        ('root ::= part{5} tail\npart ::= [a-z]\ntail ::= "end" | tail "!"', r"[a-z]{5}end!*"),
    ],
)
def test_gbnf_grammars_are_followed(
    engine: Engine, model_path: Path, source: str, pattern: str
) -> None:
    load(engine, model_path, pool_tokens=LONG)
    sampling = [SamplingParams(temperature=1.5, seed=seed) for seed in range(5)]
    requests = [asked(f"r{n}", gbnf(source), sampling=one) for n, one in enumerate(sampling)]
    ear = run_all(engine, requests)
    for request in requests:
        if finished(ear, request.request_id).reason is FinishReason.STOP:
            assert re.fullmatch(pattern, ear.text(request.request_id))


# --- beside others


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    "options",
    [{}, {"test_preempt_copy": True}, {"test_preempt_every": 3}, {"preempt_ram_mib": 1}],
    ids=str,
)
def test_parks_change_no_token(
    engine: Engine, model_path: Path, variant: str, options: dict[str, object]
) -> None:
    load(engine, model_path, cpu_variant=variant, **options)
    grammars = [LONG_WORD, regex("([a-m]{2} ){30,40}"), JSON, lark('start: (/[a-z]/ ","){30,60}')]
    requests = [asked(f"r{n}", one, max_tokens=100) for n, one in enumerate(grammars)]
    requests.append(ask("free"))
    alone = tokens_alone(engine, requests)
    ear = Ear(engine)
    submit_together(engine, requests)
    for request in requests:
        finished(ear, request.request_id)
    assert {request_id: ear.tokens(request_id) for request_id in alone} == alone
    assert any(isinstance(event, Parked) for event in ear.events)


def test_tokens_that_a_context_shift_forgets_still_count(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=128, context_shift=True)
    ear = run_all(engine, [asked("r", regex("([a-y]{7}z){40}"), max_tokens=400)])
    assert finished(ear, "r").reason is FinishReason.STOP
    assert re.fullmatch("([a-y]{7}z){40}", ear.text("r"))
    assert len(ear.tokens("r")) > 128


def test_a_request_carried_to_another_load_keeps_its_place(
    engine: Engine, model_path: Path
) -> None:
    load(engine, model_path, pool_tokens=LONG)
    request = asked("r", LONG_WORD)
    alone = tokens_alone(engine, [request])["r"]
    ear = Ear(engine)
    options = LoadOptions(pool_tokens=LONG, threads=1, test_preempt_copy=True)
    again = LoadModel(path=model_path, name="tiny", options=options, carries_on=True)
    command_at(engine, 20, again, of="r")
    engine.submit(request)
    finished(ear, "r")
    assert ear.tokens("r") == alone


def test_a_request_goes_on_from_disk_in_another_engine_at_its_place(
    tmp_path: Path, model_path: Path
) -> None:
    options = {"pool_tokens": LONG, "preempt_disk": tmp_path}
    first = create_engine()
    assert isinstance(first, Engine)
    load(first, model_path, **options)
    request = asked(ID, LONG_WORD, is_durable=True)
    alone = tokens_alone(first, [replace(request, is_durable=False)])[ID]
    before = park(first, request, at_token=30)
    wait_on_disk(first, tmp_path)
    first.shutdown()
    assert (tmp_path / f"{ID}{SUFFIX}").exists()

    second = create_engine()
    assert isinstance(second, Engine)
    load(second, model_path, **options)
    ear = Ear(second)
    second.submit(comeback())
    finished(ear, ID)
    event = resumed(ear)
    second.shutdown()
    assert list(event.token_ids) == before.tokens(ID)
    assert [*event.token_ids, *ear.tokens(ID)] == alone


def test_siblings_each_have_a_place_of_their_own(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=LONG)
    group = RequestGroup(group_id="g", size=4)
    requests = [
        asked(
            f"g-{n}",
            JSON,
            prompt=ask("g").prompt,
            group=group,
            sampling=SamplingParams(temperature=2.0, seed=n),
        )
        for n in range(4)
    ]
    ear = run_all(engine, requests)
    texts = {ear.text(request.request_id) for request in requests}
    assert len(texts) == 4
    for text in texts:
        assert list(json.loads(text)) == ["name", "age", "tags"]


# --- how it ends


def test_max_tokens_cuts_and_a_stop_string_ends(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=LONG)
    stops = asked("stops", regex("[a-c]{40}"), stop=("ab",))
    ear = run_all(engine, [asked("cut", LONG_WORD, max_tokens=7), stops])
    assert finished(ear, "cut").reason is FinishReason.LENGTH
    assert len(ear.tokens("cut")) == 7
    assert re.fullmatch("[a-z]+", ear.text("cut"))
    assert finished(ear, "stops").reason is FinishReason.STOP
    assert re.fullmatch("[a-c]*", ear.text("stops"))
    assert len(ear.text("stops")) < 40
    assert "ab" not in ear.text("stops")


def test_only_the_end_may_come_where_the_grammar_is_complete(
    engine: Engine, model_path: Path
) -> None:
    load(engine, model_path, pool_tokens=LONG)
    ear = run_all(engine, [asked("r", regex("yes")), asked("nothing", regex(""))])
    assert finished(ear, "r").reason is FinishReason.STOP
    assert ear.text("r") == "yes"
    assert finished(ear, "nothing").reason is FinishReason.STOP
    assert ear.text("nothing") == ""


@pytest.mark.parametrize("temperature", [0.0, 3.0])
def test_a_reply_that_may_end_or_go_on_does_either(
    engine: Engine, model_path: Path, temperature: float
) -> None:
    load(engine, model_path, pool_tokens=LONG)
    requests = [
        asked(f"r{n}", regex("(xy)*"), sampling=SamplingParams(temperature=temperature, seed=n))
        for n in range(5)
    ]
    ear = run_all(engine, requests)
    for request in requests:
        whole = finished(ear, request.request_id).reason is FinishReason.STOP
        assert re.fullmatch("(xy)*" if whole else "(xy)*x?", ear.text(request.request_id))


def test_a_chat_reply_begins_where_the_grammar_does(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=LONG)
    chat = Chat(messages=(ChatMessage(role="user", content="hello"),))
    ear = run_all(engine, [asked("r", regex(" [a-z]{3}"), prompt=chat)])
    finished(ear, "r")
    assert re.fullmatch(" [a-z]{3}", ear.text("r"))
