"""Requests in flight: why one is parked, why it waits and how long, and the commands that steer it.

Part of the engine's door beside `engine.api`, which re-exports what its own messages use. Everything here is data for
people to be told about; the words are the studio's. Standard library only; immutable messages that may cross threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

from engine.checks import check_name, check_range

POLICY_NAMES = ("fcfs", "cost", "smallest", "largest", "youngest", "oldest")
"""Who is parked when room is short; the first is what nobody has chosen."""

RESUME_NAMES = ("head", "pass")
"""Whether the head of the line of parked requests may be passed."""


class Origin(Enum):
    """Who asked: a chat of the window, or a program over the API."""

    GUI = "gui"
    API = "api"


class Priority(IntEnum):
    """Lower goes first."""

    INTERACTIVE = 0
    NORMAL = 1
    BACKGROUND = 2


class ParkCause(Enum):
    """What made a request give its room away."""

    PAGES_SHORT = "pages_short"
    """The next step of the others needed its pages."""
    ROTATION = "rotation"
    """The head of the line had waited long enough and is owed the room."""
    BY_USER = "by_user"
    """Somebody parked it by hand; it stays out until it is resumed by hand."""
    LAST_RESORT = "last_resort"
    """A step found no page although the plan said there was one."""
    FORCED = "forced"
    """A test parks every request every so many tokens."""
    ON_DISK = "on_disk"
    """It was parked when its model went away, and goes on from what was kept of it."""
    RELOAD = "reload"
    """Its model is being loaded anew."""
    OWNER_AWAY = "owner_away"
    """It has ended and its owner is awaited, who may be away: its room is lent out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkReason:
    """Why a request was parked, and for whom."""

    cause: ParkCause
    for_ids: tuple[str, ...] = ()
    """Requests that need the room."""
    pages_short: int = 0
    """Pages that were missing when it was chosen."""


class WaitKind(Enum):
    """What a request outside the pool waits for."""

    ENTERS_NEXT = "enters_next"
    """Nothing: it enters with the next step."""
    NO_SEAT = "no_seat"
    """As many requests as may run at once are in."""
    NO_STEP_TOKENS = "no_step_tokens"
    """Prompts before it use up the tokens of a step."""
    NO_ROOM = "no_room"
    """Its pages do not fit beside those of the others."""
    WOULD_NOT_LAST = "would_not_last"
    """It fits now, but the others will grow by more than is left: it would be parked again."""
    BEHIND_OTHERS = "behind_others"
    """Others stand before it in line."""
    HELD_BY_USER = "held_by_user"
    """It was parked by hand and waits to be resumed by hand."""
    BEHIND_SIBLINGS = "behind_siblings"
    """Other replies to the same request are parked; they come and go together."""
    BEING_SAVED = "being_saved"
    """Its state is being copied out."""
    BEING_RESTORED = "being_restored"
    """Its state is being copied back."""
    RESTORE_FAILED = "restore_failed"
    """Its state could not be copied back; it is tried again shortly."""
    OWNER = "owner"
    """Its owner's answer: it has ended, its room is lent out, and who follows it comes back before the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A request that holds room in the pool."""

    request_id: str
    held_tokens: int
    pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A share of the pool: pages of one request, or of the beginning that several have in common."""

    request_ids: tuple[str, ...]
    """Its holders, the one that was asked first before the others."""
    pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitReason:
    """Why a request is outside the pool, as far as it can be told now."""

    kind: WaitKind
    place: int
    """1 is next to enter; 0 stands in no line."""
    ahead_ids: tuple[str, ...] = ()
    """The first few of those before it, the next one first."""
    pages_needed: int = 0
    """Pages it must find before it can go on."""
    pages_spare: int = 0
    """Pages that nobody in the pool needs for what he has."""
    holders: tuple[Holder, ...] = ()
    """Who holds room, the largest first."""

    @property
    def num_ahead(self) -> int:
        """How many stand before it."""
        return max(self.place - 1, 0)


class RunState(Enum):
    """Where a request is."""

    QUEUED = "queued"
    READING = "reading"
    """Its prompt is being read; for a parked request that came back, all it had written too."""
    WRITING = "writing"
    BEING_PARKED = "being_parked"
    PARKED = "parked"
    BEING_RESTORED = "being_restored"
    AWAITS_OWNER = "awaits_owner"
    """It has ended and is kept for its owner's answer: in the pool, or with its room lent out, as `Run.wait` says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One request in flight."""

    request_id: str
    origin: Origin
    priority: Priority
    state: RunState
    prompt_tokens: int
    held_tokens: int
    """Tokens it has, prompt and reply."""
    completion_tokens: int
    is_pinned: bool
    num_parks: int
    num_recomputes: int
    waited_s: float
    """Seconds it has spent outside the pool, in line and parked."""
    computed_tokens: int = 0
    """Of the tokens it has, those that have been read; all but the last one while it writes."""
    kept_pages: int = 0
    """While it is parked: pages of its own kept outside the pool; 0 if its state was dropped, to be computed again."""
    wait: WaitReason | None = None
    """Set while it is outside the pool."""
    expected_wait_s: tuple[float, float] | None = None
    """Soonest and latest entry in seconds from now, which most waits keep to; None in no line, before any speed is
    measured, and where the range would be too wide to say anything."""
    is_called: bool = False
    """Let go first by hand with `ResumeNext`, as long as that counts: it goes first, or keeps its room for that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUsage:
    """The KV pool in pages. `reusable` pages hold prefixes of finished requests and are free for the taking."""

    total_pages: int = 0
    free_pages: int = 0
    reusable_pages: int = 0
    page_tokens: int = 0
    page_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkUsage:
    """What parked requests hold outside the pool's account."""

    budget_bytes: int = 0
    """0: nobody is ever parked; -1: no limit."""
    most_budget_bytes: int = 0
    """What a larger budget is lowered to: half of the memory that was free when the model was loaded; 0 without one."""
    is_async: bool = False
    """Whether copies of parked states run beside the steps; False also where nothing is copied."""
    used_bytes: int = 0
    num_parks: int = 0
    """Parks whose pages have been given to others, since the model was loaded."""
    num_resumes: int = 0
    num_recomputes: int = 0
    """Parks that dropped the state; it is computed again on return."""
    num_rotations: int = 0
    """Parks for a head of the line that had waited long enough."""
    num_last_resorts: int = 0
    """Steps that found no page although the plan said there was one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCount:
    """All steps of one kind since the model was loaded, added up."""

    replies: int
    """Tokens of replies in each of them."""
    has_prompts: bool
    """Whether parts of prompts were read in them, too."""
    steps: int
    seconds: float
    """Up to its last event; planning who comes and goes, and copying pages for that, does not count."""
    prompt_tokens: int
    context_tokens: int
    """For each token computed, the tokens that its sequence held before its share of the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkNow:
    """Park a request by hand; it stays out until `ResumeNext`."""

    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeNext:
    """Put a request at the head of the line, whoever parked it; room is made for it at once.

    It keeps its room for some seconds then; one that is in the pool has them from now on.
    """

    request_id: str
    goes_first: bool = True
    """False: only a park by hand is taken back, and it keeps its place in line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """Keep a request from being parked as long as anybody else can be; `is_pinned=False` lets go of it."""

    request_id: str
    is_pinned: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPriority:
    """Change a request's place among the others."""

    request_id: str
    priority: Priority


@dataclass(frozen=True, slots=True, kw_only=True)
class SetVictimPolicy:
    """Change who is parked and in which order they return. Raises InvalidRequest on a name not in POLICY_NAMES."""

    name: str

    def __post_init__(self) -> None:
        check_name("name", self.name, POLICY_NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetParkBudget:
    """Change how many bytes parked requests may hold: 0 parks nobody any more, -1 is no limit.

    Raises InvalidRequest below -1. It is lowered to half of the memory that was free when the model was loaded.
    """

    budget_bytes: int

    def __post_init__(self) -> None:
        check_range("budget_bytes", self.budget_bytes, -1, 1 << 62)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspend:
    """End a request because the program ends: its state stays on disk if it `is_durable`; Suspended follows then.

    ParkDiskFailed follows if it should stay there and cannot.
    """

    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetSaved:
    """Delete states on disk that nobody will come back for; ids without one are passed over."""

    request_ids: tuple[str, ...]


SteeringCommand = ParkNow | ResumeNext | Pin | SetPriority | SetVictimPolicy | SetParkBudget
