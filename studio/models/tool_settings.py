"""The settings of tools in chats. Plain values; any thread, no Qt."""

from __future__ import annotations

from dataclasses import dataclass, field

from studio.models.setting_field import SettingInfo, about


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """What chats do while tools run, and while they wait for the user's word."""

    grace_s: int = field(
        default=10,
        metadata=about(
            SettingInfo(
                title="Keep the room of a chat that waits for you",
                help="so long; then it is lent out until you answer, and the chat comes back before the others",
                env="LAYBY_TOOLS_GRACE",
                low=0,
                high=86_400,
                unit="s",
            )
        ),
    )
    timeout_s: int = field(
        default=120,
        metadata=about(
            SettingInfo(
                title="Longest time of a tool",
                help="a tool that has not answered by then is given up, and the model is told so",
                env="LAYBY_TOOLS_TIMEOUT",
                low=1,
                high=86_400,
                unit="s",
            )
        ),
    )
    most_rounds: int = field(
        default=25,
        metadata=about(
            SettingInfo(
                title="Most rounds of tools",
                help="after so many replies with tools to one message, the model has to answer without",
                env="LAYBY_TOOLS_ROUNDS",
                low=1,
                high=1000,
            )
        ),
    )
