"""Where models may be downloaded from. Plain values; any thread, no Qt."""

from __future__ import annotations

from dataclasses import dataclass, field

from studio.models.setting_field import SettingInfo, about


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """The sources that are switched on. Nothing is looked up anywhere before the user asks for it."""

    suggested: bool = field(
        default=True,
        metadata=about(
            SettingInfo(
                title="Suggested models",
                help="the short list that comes with Layby, each file with its checksum",
                env="LAYBY_SOURCE_SUGGESTED",
            )
        ),
    )
    hub: bool = field(
        default=False,
        metadata=about(
            SettingInfo(
                title="Hugging Face Hub",
                help="search the hub for GGUF files; it sees what is searched for and downloaded",
                env="LAYBY_SOURCE_HUB",
            )
        ),
    )
    any_url: bool = field(
        default=False,
        metadata=about(
            SettingInfo(
                title="Any address",
                help="download a GGUF file from an address that you give; check that you trust who offers it",
                env="LAYBY_SOURCE_URL",
            )
        ),
    )
