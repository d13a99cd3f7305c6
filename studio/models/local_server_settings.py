"""The settings of the local server. Plain values; any thread, no Qt."""

from __future__ import annotations

from dataclasses import dataclass, field

from studio.models.errors import ServerStartError
from studio.models.server_settings import ServerSettings, read_origins
from studio.models.setting_field import AppliesAt, SettingInfo, about


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServerSettings:
    """The local server."""

    is_enabled: bool = field(
        default=False,
        metadata=about(
            SettingInfo(
                title="Start with the window",
                help="start the server together with the window",
                env="LAYBY_SERVER",
            )
        ),
    )
    host: str = field(
        default="127.0.0.1",
        metadata=about(
            SettingInfo(
                title="Address",
                help="address to listen on; 127.0.0.1 is reached from this machine only",
                env="LAYBY_HOST",
                flags=("--host",),
                applies=AppliesAt.SERVER_START,
            )
        ),
    )
    port: int = field(
        default=8484,
        metadata=about(
            SettingInfo(
                title="Port",
                help="port to listen on; 0: a free one",
                env="LAYBY_PORT",
                flags=("--port",),
                low=0,
                high=65535,
                lowest="a free one",
                applies=AppliesAt.SERVER_START,
            )
        ),
    )
    api_key: str = field(
        default="",
        metadata=about(
            SettingInfo(
                title="API key",
                help="one key that all programs have to send; empty asks for none. Keys of their own, with a lane "
                "(who goes first) and a share of the pool, are made on the page of keys",
                env="LAYBY_API_KEY",
                flags=("--api-key",),
                applies=AppliesAt.SERVER_START,
                is_secret=True,
            )
        ),
    )
    sse_ping_interval: int = field(
        default=30,
        metadata=about(
            SettingInfo(
                title="Ping interval",
                help="after so many seconds without a word a waiting program is sent a sign of life, "
                "which keeps the connection open; -1: never",
                env="LAYBY_SSE_PING_INTERVAL",
                flags=("--sse-ping-interval",),
                low=-1,
                high=3600,
                unit="s",
                lowest="none",
                applies=AppliesAt.SERVER_START,
            )
        ),
    )

    cors_origins: str = field(
        default="",
        metadata=about(
            SettingInfo(
                title="Origins",
                help="web pages elsewhere that may use the server, like https://app.example; several apart by commas, "
                "* for all",
                env="LAYBY_CORS_ORIGINS",
                flags=("--cors-origins",),
                applies=AppliesAt.SERVER_START,
            )
        ),
    )
    lets_local_in: bool = field(
        default=False,
        metadata=about(
            SettingInfo(
                title="This machine needs no key",
                help="let programs on this machine in without a key, even where there are keys",
                env="LAYBY_SERVER_LETS_LOCAL_IN",
                applies=AppliesAt.SERVER_START,
            )
        ),
    )
    loads_models: bool = field(
        default=True,
        metadata=about(
            SettingInfo(
                title="Load the model a request names",
                help="if the library has it, with its own load settings, and only while nobody uses the one loaded",
                env="LAYBY_SERVER_LOADS_MODELS",
            )
        ),
    )
    keeps_prompts: bool = field(
        default=False,
        metadata=about(
            SettingInfo(
                title="Show prompts of requests",
                help="keep what programs asked in the list of requests, in memory, until Layby closes",
                env="LAYBY_SERVER_KEEPS_PROMPTS",
                applies=AppliesAt.SERVER_START,
            )
        ),
    )

    def server_settings(self) -> ServerSettings:
        """These settings as the server takes them. Raises ServerStartError for origins that are none."""
        try:
            return ServerSettings(
                host=self.host,
                port=self.port,
                api_key=self.api_key or None,
                sse_ping_interval_s=self.sse_ping_interval,
                lets_local_in=self.lets_local_in,
                cors_origins=read_origins(self.cors_origins),
                keeps_prompts=self.keeps_prompts,
            )
        except ValueError as error:
            raise ServerStartError(str(error)) from error
