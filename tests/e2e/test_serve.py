"""`layby serve` and the openai package on the starter model: real answers, and the same bytes alone or together."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from openai import NotFoundError, OpenAI

from fakes.serving import ROOT, client_of

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("served")]

PROMPTS = (
    "Write three sentences about the sea.",
    "List five animals that live in a forest, one a line.",
    "Explain to a child why the sky is blue.",
    "Tell a short story about a lighthouse keeper and a storm that lasted for nine days and nights.",
)


def stream_text(client: OpenAI, prompt: str, **options: object) -> tuple[str, str | None, int]:
    """Text, finish reason and completion tokens of a streamed chat."""
    text, reason, tokens = "", None, 0
    for chunk in client.chat.completions.create(
        model="smollm2-135m",
        messages=[{"role": "user", "content": prompt}],
        stream=True,
        stream_options={"include_usage": True},
        max_tokens=48,
        **options,
    ):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reason = choice.finish_reason or reason
        tokens = chunk.usage.completion_tokens if chunk.usage else tokens
    return text, reason, tokens


def test_models_are_listed_with_their_time(served: str) -> None:
    models = client_of(served).models.list().data
    assert [model.id for model in models] == ["smollm2-135m"]
    assert models[0].created > 1_500_000_000


def test_a_question_gets_a_sensible_answer(served: str) -> None:
    answer = client_of(served).chat.completions.create(
        model="smollm2-135m",
        messages=[{"role": "user", "content": "What is the capital of France?"}],
        temperature=0,
        max_tokens=30,
    )
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_streamed_and_whole_answers_are_the_same(served: str) -> None:
    client = client_of(served)
    streamed, reason, tokens = stream_text(client, PROMPTS[0], temperature=0)
    whole = client.chat.completions.create(
        model="smollm2-135m",
        messages=[{"role": "user", "content": PROMPTS[0]}],
        temperature=0,
        max_tokens=48,
    )
    assert whole.choices[0].message.content == streamed
    assert whole.choices[0].finish_reason == reason
    assert whole.usage is not None
    assert whole.usage.completion_tokens == tokens


@pytest.mark.parametrize("options", [{"temperature": 0}, {"temperature": 0.8, "seed": 1234}])
def test_four_together_say_what_each_says_alone(served: str, options: dict[str, object]) -> None:
    client = client_of(served)
    alone = [stream_text(client, prompt, **options) for prompt in PROMPTS]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda p: stream_text(client, p, **options), PROMPTS))
    assert together == alone
    assert all(reason in ("stop", "length") and text for text, reason, _ in alone)


def test_text_completion_goes_on_from_the_prompt(served: str) -> None:
    client = client_of(served)
    done = client.completions.create(
        model="smollm2-135m", prompt="One, two, three, four,", temperature=0, max_tokens=6
    )
    assert "five" in done.choices[0].text


def test_a_client_that_goes_away_frees_its_cells(served: str) -> None:
    client = client_of(served)
    stream = client.chat.completions.create(
        model="smollm2-135m",
        messages=[{"role": "user", "content": PROMPTS[3]}],
        stream=True,
        extra_body={"ignore_eos": True},
    )
    next(iter(stream))
    stream.close()
    # It would write for minutes; with its seat taken, four more could not run at once.
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda p: stream_text(client, p, temperature=0), PROMPTS))
    assert all(text for text, _, _ in results)


def test_errors_have_openais_shape(served: str) -> None:
    with pytest.raises(NotFoundError, match="gpt-99"):
        client_of(served).chat.completions.create(
            model="gpt-99", messages=[{"role": "user", "content": "hi"}]
        )
    long = httpx.post(
        f"{served}/v1/chat/completions",
        json={"messages": [{"role": "user", "content": "word " * 6000}]},
        timeout=60,
    )
    assert long.status_code == 400
    assert long.json()["error"]["code"] == "context_length_exceeded"


def test_a_wrong_model_is_one_clear_line(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "studio", "serve", "-m", str(tmp_path / "no.gguf"), "--port", "0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.strip().splitlines()[-1].startswith("layby: ")
    assert "Traceback" not in result.stderr
