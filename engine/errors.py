"""Everything that can go wrong in the engine, as one tree.

EngineError
├── RequestError                the request cannot be served as it was asked
│   ├── InvalidRequest          a field has a value that is not allowed
│   └── ContextLengthExceeded   prompt, or prompt and reply, do not fit
│       └── PoolFull            it ran out of room in the pool, and nobody could be parked for it
├── ModelError                  a model cannot be used
│   ├── ModelNotFound           no such file, folder or library name
│   ├── CorruptModel            the file contradicts itself or ends too early
│   ├── UnsupportedModel        a sound file, but not one this version can run
│   └── NotEnoughMemory         the model or its pool does not fit this machine
├── WaitedTooLong               it waited outside the pool for as long as it was willing to
├── RestoreFailed               its parked state could not be brought back
├── Suspended                   it was put aside on disk, and another request can go on with it
├── ResumeRefused               what is on disk cannot be gone on with here
├── ParkDiskFailed              parked state cannot be kept on disk; concerns no request
├── ModelUnavailable            no model is loaded, or it was unloaded or replaced meanwhile
├── DeviceFailure               a kernel or the device failed in the middle of a step
└── EngineStopped               the engine has shut down

Each message says what is wrong, the value, the limit and the remedy. Every class has a stable `code`; the server maps
codes to HTTP answers and the studio maps them to notices, each in one table.
"""

from __future__ import annotations


class EngineError(Exception):
    """The root; `code` never changes once released, the text may."""

    code = "engine_error"


class RequestError(EngineError):
    """The request cannot be served as it was asked; the same request would fail again."""

    code = "invalid_request"


class InvalidRequest(RequestError):
    """A field of the request has a value that is not allowed; `param` names the field."""

    code = "invalid_value"

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class ContextLengthExceeded(RequestError):
    """The request needs more tokens than the model's window or the whole pool can hold.

    `needed_tokens` are those that it has; a prompt leaves room for at least one more. `prompt_tokens` are those of
    the prompt: all of them, unless they are given.
    """

    code = "context_length_exceeded"

    def __init__(
        self,
        message: str,
        *,
        needed_tokens: int,
        limit_tokens: int,
        prompt_tokens: int | None = None,
    ) -> None:
        super().__init__(message)
        self.prompt_tokens = needed_tokens if prompt_tokens is None else prompt_tokens
        self.needed_tokens = needed_tokens
        self.limit_tokens = limit_tokens


class PoolFull(ContextLengthExceeded):
    """The request outgrew the room in the pool and nobody can be parked for it; text sent so far stays."""

    code = "pool_full"


class ModelError(EngineError):
    """A model cannot be used; other models and all chats are unharmed."""

    code = "model_error"


class ModelNotFound(ModelError):
    """There is no such file, folder or name in the library."""

    code = "model_not_found"


class CorruptModel(ModelError):
    """The model's files contradict themselves, end too early or ask for absurd sizes; the message names the field."""

    code = "model_corrupt"


class UnsupportedModel(ModelError):
    """The files are sound but need something this version does not have (or refuses, like pickled weights)."""

    code = "model_unsupported"


class NotEnoughMemory(ModelError):
    """The weights or the pool do not fit; the message says what would."""

    code = "not_enough_memory"


class WaitedTooLong(EngineError):
    """The request has spent its `max_wait_s` outside the pool; it may be asked again after `retry_after_s`."""

    code = "waited_too_long"

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class RestoreFailed(EngineError):
    """The state of a parked request could not be brought back, in many tries; text sent so far stays."""

    code = "restore_failed"


class Suspended(EngineError):
    """The model went away and the request's state is on disk: a request that `resumes` goes on with it."""

    code = "suspended"


class ResumeRefused(EngineError):
    """The state on disk is damaged, gone, or of another model; text sent before stays.

    `is_lost`: no model can go on with it, and it is deleted.
    """

    code = "resume_refused"

    def __init__(self, message: str, *, is_lost: bool = False) -> None:
        super().__init__(message)
        self.is_lost = is_lost


class ParkDiskFailed(EngineError):
    """Parked state cannot be kept on disk; parking itself goes on without."""

    code = "park_disk_failed"


class ModelUnavailable(EngineError):
    """No model is loaded, or the one that served this request was unloaded.

    Where one is being loaded it may be asked again after `retry_after_s`.
    """

    code = "model_unavailable"

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class DeviceFailure(EngineError):
    """A kernel or the device failed; the requests of that step end, the engine goes on."""

    code = "device_failure"


class EngineStopped(EngineError):
    """The engine has shut down and takes no more requests."""

    code = "engine_stopped"
