"""How the next token is chosen.

Part of the engine's door beside `engine.api`, which re-exports it. Standard library only; immutable, any thread.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.checks import check_range

SAMPLING_BOUNDS: dict[str, tuple[float, float]] = {
    "temperature": (0, 100), "top_k": (0, 1 << 30), "top_p": (0, 1), "min_p": (0, 1), "typical_p": (0, 1),
    "repetition_penalty": (0.01, 100), "presence_penalty": (-100, 100), "frequency_penalty": (-100, 100),
    "penalty_last_n": (-1, 1 << 30), "dry_multiplier": (0, 100), "dry_base": (1, 100),
    "dry_allowed_length": (1, 1 << 20), "dry_penalty_last_n": (-1, 1 << 30),
    "seed": (-(1 << 63), (1 << 64) - 1), "logprobs": (0, 20),
}  # fmt: skip
"""Allowed values, ends included; None is allowed where it is the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How the next token is chosen. Temperature 0 is greedy; every other draw is a function of (seed, position).

    Raises InvalidRequest, naming the field, when a value is out of bounds.
    """

    temperature: float = 0.8
    """0 (always the likeliest token) to 100."""
    top_k: int = 40
    """Keep the k likeliest tokens; 0 keeps all."""
    top_p: float = 0.95
    """Keep the smallest set whose probability reaches p; 1 keeps all."""
    min_p: float = 0.05
    """Keep tokens at least this share of the likeliest one's probability; 0 keeps all."""
    typical_p: float = 1.0
    """Locally typical sampling (arXiv 2202.00666); 1 keeps all."""
    repetition_penalty: float = 1.0
    """Divides positive and multiplies negative logits of tokens seen in the last `penalty_last_n`; 1 is off."""
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_last_n: int = 64
    """How far the three penalties look back, prompt included; 0 is off, -1 the whole context."""
    dry_multiplier: float = 0.0
    """DRY: penalises a token that would extend a repeated sequence; 0 is off."""
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = -1
    dry_sequence_breakers: tuple[str, ...] = ("\n", ":", '"', "*")
    logit_bias: tuple[tuple[int, float], ...] = ()
    """(token id, added to its logit); -inf (or -100 and below) forbids the token."""
    seed: int | None = None
    """None draws a fresh seed for the request; it is reported in `Usage`."""
    logprobs: int | None = None
    """None: no logprobs. N: the chosen token's and the N likeliest tokens' log probabilities."""

    def __post_init__(self) -> None:
        for name, (low, high) in SAMPLING_BOUNDS.items():
            if (value := getattr(self, name)) is not None:
                check_range(name, value, low, high)
