"""What the user has set for one model, where it differs from the settings for all. Plain values; any thread, no Qt."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from engine.api import Device, KvType, LoadOptions

SETTING_OF = {
    "pool_tokens": "engine.ctx_size",
    "parallel": "engine.parallel",
    "threads": "engine.threads",
    "kv_type": "engine.kv_type",
    "device": "engine.device",
    "preempt_ram_mib": "park.ram_mib",
}
"""The setting for all models behind each choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadChoices:
    """Each None: as for all models."""

    pool_tokens: int | None = None
    parallel: int | None = None
    threads: int | None = None
    kv_type: KvType | None = None
    device: Device | None = None
    preempt_ram_mib: int | None = None

    @property
    def is_empty(self) -> bool:
        return self == LoadChoices()

    def over(self, options: LoadOptions, *, fixed: frozenset[str] = frozenset()) -> LoadOptions:
        """`options` with these choices, those `fixed` by a flag or variable left as they are.

        Raises InvalidRequest for a value that is out of bounds.
        """
        chosen = {
            field.name: value
            for field in fields(self)
            if (value := getattr(self, field.name)) is not None and field.name not in fixed
        }
        return replace(options, **chosen)

    def as_record(self) -> dict[str, object]:
        """What is written to disk: only what is chosen."""
        found = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {
            name: value.value if isinstance(value, KvType | Device) else value
            for name, value in found
            if value is not None
        }

    @classmethod
    def from_record(cls, record: dict[str, object]) -> LoadChoices:
        """The choices of a record. Raises TypeError or ValueError for one that is none, InvalidRequest for a value."""
        values: dict[str, object] = dict(record)
        if "kv_type" in values:
            values["kv_type"] = KvType(values["kv_type"])
        if "device" in values:
            values["device"] = Device(values["device"])
        for name in ("pool_tokens", "parallel", "threads", "preempt_ram_mib"):
            if name in values and type(values[name]) is not int:
                raise TypeError(f"{name} is no whole number")
        choices = cls(**values)  # type: ignore[arg-type]  # just checked; a wrong name raises TypeError
        choices.over(LoadOptions())
        return choices
