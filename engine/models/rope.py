"""Rotary embedding: the angle per position of each pair of values, and how long contexts change it. Pure Python.

Sources: RoFormer (arXiv 2104.09864); Llama 3.1's scaling as in Hugging Face's `modeling_rope_utils`; YaRN (arXiv
2309.00071).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.errors import UnsupportedModel
from engine.models.fields import Fields

_MAX_FACTOR = 1e6
_MAX_POSITIONS = 1 << 31


@dataclass(frozen=True, slots=True)
class Rope:
    """`inverse_frequencies` has one angle per position for each pair; `magnitude` multiplies cosine and sine."""

    inverse_frequencies: tuple[float, ...]
    magnitude: float = 1.0


def plain_rope(base: float, head_dim: int) -> Rope:
    """No scaling: base^(-2i / head_dim)."""
    return Rope(tuple(base ** (-2 * i / head_dim) for i in range(head_dim // 2)))


def divided_rope(rope: Rope, divisors: list[float]) -> Rope:
    """Each frequency divided by its own factor (the GGUF tensor rope_freqs.weight), or all by one (linear scaling)."""
    if len(divisors) == 1:
        divisors = divisors * len(rope.inverse_frequencies)
    pairs = zip(rope.inverse_frequencies, divisors, strict=True)
    return Rope(tuple(frequency / divisor for frequency, divisor in pairs))


@dataclass(frozen=True, slots=True)
class Llama3Scaling:
    """Low frequencies are divided by `factor`, high ones kept, those between blended."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_tokens: int

    def apply(self, rope: Rope) -> Rope:
        return Rope(tuple(self._scale(frequency) for frequency in rope.inverse_frequencies))

    def _scale(self, frequency: float) -> float:
        turns = self.original_tokens * frequency / (2 * math.pi)
        if turns > self.high_freq_factor:
            return frequency
        if turns < self.low_freq_factor:
            return frequency / self.factor
        blend = (turns - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor)
        return (1 - blend) * frequency / self.factor + blend * frequency


@dataclass(frozen=True, slots=True)
class YarnScaling:
    """YaRN: pairs that turn more than `beta_fast` times in the original context keep their frequency, those that turn
    less than `beta_slow` times have it divided by `factor`."""

    factor: float
    original_tokens: int
    beta_fast: float
    beta_slow: float
    magnitude: float
    base: float
    truncate: bool = True

    def apply(self, rope: Rope) -> Rope:
        pairs = len(rope.inverse_frequencies)
        low, high = self._pair_of(self.beta_fast, pairs), self._pair_of(self.beta_slow, pairs)
        if self.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, 2 * pairs - 1)
        width = max(high - low, 0.001)
        scaled = []
        for index, frequency in enumerate(rope.inverse_frequencies):
            share = min(max((index - low) / width, 0.0), 1.0)
            scaled.append(frequency / self.factor * share + frequency * (1 - share))
        return Rope(tuple(scaled), self.magnitude)

    def _pair_of(self, turns: float, pairs: int) -> float:
        """The (fractional) index of the pair that turns so often in the original context."""
        wavelengths = self.original_tokens / (turns * 2 * math.pi)
        return pairs * math.log(wavelengths) / math.log(self.base)


def yarn_magnitude(factor: float, weight: float = 1.0) -> float:
    """The attention factor of the YaRN paper, with the slope as DeepSeek's configurations may set it."""
    return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0


def config_rope(config: Fields, head_dim: int) -> Rope:
    """What a config.json says: `rope_parameters`, or the older `rope_theta` and `rope_scaling`.

    Raises CorruptModel, and UnsupportedModel for kinds of scaling that change with the length of the text.
    """
    fields = config.table("rope_parameters")
    if not fields.has("rope_theta"):
        fields = config.table("rope_scaling")
    base_fields = fields if fields.has("rope_theta") else config
    base = base_fields.number("rope_theta", 1.001, 1e12, default=10_000.0)
    kind = fields.text("rope_type", default=fields.text("type", default="default"))
    rope = plain_rope(base, head_dim)
    if fields.number("partial_rotary_factor", 0.0, 1.0, default=1.0) != 1.0 or (
        config.number("partial_rotary_factor", 0.0, 1.0, default=1.0) != 1.0
    ):
        raise UnsupportedModel("partial_rotary_factor other than 1 is not supported yet")
    match kind:
        case "default":
            return rope
        case "linear":
            return divided_rope(rope, [fields.number("factor", 1e-3, _MAX_FACTOR)])
        case "llama3":
            return _config_llama3(fields).apply(rope)
        case "yarn":
            return _config_yarn(fields, config, base).apply(rope)
        case _:
            raise UnsupportedModel(
                f"rope_scaling of type {kind!r:.40} is not supported; default, linear, llama3 and yarn are"
            )


def _config_llama3(fields: Fields) -> Llama3Scaling:
    low = fields.number("low_freq_factor", 1e-3, _MAX_FACTOR)
    high = fields.number("high_freq_factor", 1e-3, _MAX_FACTOR)
    if high <= low:
        raise fields.wrong("high_freq_factor", f"must be above low_freq_factor, {low:g}")
    return Llama3Scaling(
        factor=fields.number("factor", 1e-3, _MAX_FACTOR),
        low_freq_factor=low,
        high_freq_factor=high,
        original_tokens=fields.integer("original_max_position_embeddings", 1, _MAX_POSITIONS),
    )


def _config_yarn(fields: Fields, config: Fields, base: float) -> YarnScaling:
    context = config.integer("max_position_embeddings", 1, _MAX_POSITIONS)
    factor = fields.number("factor", 1e-3, _MAX_FACTOR)
    slopes = [fields.number(key, 0.0, 100.0, default=0.0) for key in ("mscale", "mscale_all_dim")]
    if all(slopes):
        magnitude = yarn_magnitude(factor, slopes[0]) / yarn_magnitude(factor, slopes[1])
    else:
        magnitude = yarn_magnitude(factor)
    return YarnScaling(
        factor=factor,
        original_tokens=fields.integer(
            "original_max_position_embeddings", 1, _MAX_POSITIONS, default=context
        ),
        beta_fast=fields.number("beta_fast", 1e-3, _MAX_FACTOR, default=32.0),
        beta_slow=fields.number("beta_slow", 1e-3, _MAX_FACTOR, default=1.0),
        magnitude=fields.number("attention_factor", 1e-3, 1e3, default=magnitude),
        base=base,
        truncate=fields.flag("truncate", default=True),
    )


def gguf_rope(fields: Fields, head_dim: int, context_tokens: int) -> Rope:
    """What GGUF metadata say under `<architecture>.rope.`; rope_freqs.weight is applied by the caller.

    Raises CorruptModel, and UnsupportedModel for kinds of scaling that are not supported.
    """
    base = fields.number("rope.freq_base", 1.001, 1e12, default=10_000.0)
    dimensions = fields.integer("rope.dimension_count", 1, 1 << 16, default=head_dim)
    if dimensions != head_dim:
        raise UnsupportedModel(
            f"rope.dimension_count is {dimensions}, heads have {head_dim}: partly rotated heads are not supported yet"
        )
    rope = plain_rope(base, head_dim)
    legacy = fields.number("rope.scale_linear", 1e-3, _MAX_FACTOR, default=1.0)
    factor = fields.number("rope.scaling.factor", 0.0, _MAX_FACTOR, default=legacy) or 1.0
    kind = fields.text("rope.scaling.type", default="linear")
    match kind:
        case "none":
            return rope
        case "linear":
            return divided_rope(rope, [factor])
        case "yarn":
            attention = fields.number("rope.scaling.attn_factor", 1e-3, 1e3, default=1.0)
            return YarnScaling(
                factor=factor,
                original_tokens=fields.integer(
                    "rope.scaling.original_context_length",
                    1,
                    _MAX_POSITIONS,
                    default=context_tokens,
                ),
                beta_fast=fields.number("rope.scaling.yarn_beta_fast", 1e-3, 1e6, default=32.0),
                beta_slow=fields.number("rope.scaling.yarn_beta_slow", 1e-3, 1e6, default=1.0),
                magnitude=attention * yarn_magnitude(factor),
                base=base,
            ).apply(rope)
        case _:
            raise UnsupportedModel(
                f"rope.scaling.type {kind!r:.40} is not supported; none, linear and yarn are"
            )
