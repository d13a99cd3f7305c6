"""What can go wrong in the studio itself, as one tree beside the engine's own (`engine.errors`).

StudioError
├── SettingError            a setting, flag or environment variable has a value that is not allowed
├── StoreError              the chat history cannot be used
│   ├── StoreBusy           another Layby has it open
│   ├── StoreFull           the disk is full
│   ├── StoreBroken         the file was damaged; it has been set aside
│   └── StoreMoved          the file was gone from its place; it has been put back
├── ServerStartError        the local server cannot start as it is set
│   └── PortTaken           another program listens at its port
├── ToolServerError         a server of tools cannot be declared, started or asked like that
├── ToolsTooLong            a chat has no room for its tools
├── LibraryError            the model library cannot be changed like that
└── FetchError              a model could not be fetched
    ├── FetchUnavailable    this installation or its network cannot fetch
    ├── FetchMismatch       what arrived is not the promised file
    ├── NoSpace             the disk has no room for it
    └── FetchCancelled      the user stopped it

Each message says what, the value, the limit and the remedy. `code` is stable;
`services.notice_service` maps it to words. Standard library only; any thread.
"""

from __future__ import annotations


class StudioError(Exception):
    """The root; `code` never changes once released, the text may."""

    code = "studio_error"


class SettingError(StudioError):
    """A setting, flag or environment variable has a value that is not allowed."""

    code = "setting_invalid"


class StoreError(StudioError):
    """The chat history cannot be read or written; what is in memory is written again later."""

    code = "store_failed"


class StoreBusy(StoreError):
    """Another running Layby holds the chat history."""

    code = "store_busy"


class StoreFull(StoreError):
    """There is no room on the disk for the chat history."""

    code = "store_full"


class StoreBroken(StoreError):
    """The history file was damaged and has been set aside."""

    code = "store_broken"


class StoreMoved(StoreError):
    """The history file was moved, removed or replaced while it was open, and has been put back."""

    code = "store_moved"


class ServerStartError(StudioError):
    """The local server cannot start as it is set; the message names the value and the remedy."""

    code = "server_failed"


class PortTaken(ServerStartError):
    """Another program listens at the port; `free_port` is the next free one, 0 if none was found."""

    code = "port_taken"

    def __init__(self, message: str, *, port: int, free_port: int) -> None:
        super().__init__(message)
        self.port = port
        self.free_port = free_port


class LibraryError(StudioError):
    """The model library cannot be changed like that; it is as it was."""

    code = "library_refused"


class AttachmentError(StudioError):
    """A file cannot be attached; the message names it and says why."""

    code = "attachment_refused"


class ToolServerError(StudioError):
    """A server of tools cannot be declared, started or asked like that; the message names it."""

    code = "tool_server_failed"


class ToolsTooLong(StudioError):
    """A chat does not fit the model's window because of its tools."""

    code = "tools_too_long"

    def __init__(self, message: str, *, chat_id: int) -> None:
        super().__init__(message)
        self.chat_id = chat_id


class SupportError(StudioError):
    """A log bundle cannot be saved; the message names the file."""

    code = "support_failed"


class ExchangeError(StudioError):
    """A file of chats cannot be read or written; the message names it."""

    code = "exchange_failed"


class FetchError(StudioError):
    """A model could not be fetched; nothing of it is in the library."""

    code = "fetch_failed"


class FetchUnavailable(FetchError):
    """This installation has no way to fetch, or the network does not answer."""

    code = "fetch_unavailable"


class FetchMismatch(FetchError):
    """What arrived is not the promised file."""

    code = "fetch_mismatch"


class NoSpace(FetchError):
    """The disk has no room for the rest; what is there already stays."""

    code = "fetch_no_space"


class FetchCancelled(FetchError):
    """The user stopped the fetch."""

    code = "fetch_cancelled"
