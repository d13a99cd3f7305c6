"""Chats as the studio holds them: services change them, views show them.

Plain state, owned by the GUI thread; no Qt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

from engine.runs import ParkReason
from studio.models.attachment import Attachment
from studio.models.chat_settings import ChatSettings
from studio.models.message_tree import MessageTree
from studio.models.one_line import one_line
from studio.models.tool_use import ChatTools, ToolUse, ToolUseState

_SUMMARY = "summary-"
_REPLY_ID = re.compile(r"chat-(-?\d{1,18})-(-?\d{1,18})(-\d{1,9})?", re.ASCII)
_BEGINNING_CHARS = 80
NEW_CHAT_TITLE = "New chat"
"""What a chat is called until its first prompt."""


class Role(Enum):
    """Who said it, in the words of chat templates."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class MessageStatus(Enum):
    """How a message stands. The first five are alive; the others have ended."""

    QUEUED = "queued"
    READING = "reading"
    WRITING = "writing"
    PARKED = "parked"
    TOOLS = "tools"
    """It has called tools: they run, or wait for the user's word."""
    DONE = "done"
    STOPPED = "stopped"
    LENGTH = "length"
    """The reply reached its token limit or the end of the window."""
    INTERRUPTED = "interrupted"
    """Program or model went away while the reply was being written; it may be gone on with."""
    FAILED = "failed"

    @property
    def is_alive(self) -> bool:
        return self in _ALIVE


_ALIVE = frozenset(
    {
        MessageStatus.QUEUED,
        MessageStatus.READING,
        MessageStatus.WRITING,
        MessageStatus.PARKED,
        MessageStatus.TOOLS,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Park:
    """A park that lasts: since when, in seconds of the Unix clock, and why."""

    since_s: float
    reason: ParkReason


@dataclass(slots=True)
class ReplyStats:
    """Figures under a reply; None until known. Parked time is apart from the rest."""

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    first_token_s: float | None = None
    tokens_per_s: float | None = None
    parked_s: float = 0.0
    thought_s: float | None = None
    """Seconds of thinking before the answer, without parked time; None if it did not think, or still does."""
    reads_from_id: int | None = None
    """Of a prompt: from here on the model is given only the messages from this one on; None: as before,
    THIS_PROMPT: from itself on."""
    summary: str = ""
    """Of a prompt: what stands for the messages before that, for the model."""
    num_continues: int = 0
    """How often the reply was gone on with after it had ended."""


@dataclass(slots=True, eq=False)
class Message:
    """One turn. `text` grows while the reply is being written."""

    message_id: int
    chat_id: int
    role: Role
    text: str
    created_s: float
    status: MessageStatus = MessageStatus.DONE
    note: str = ""
    """Why it failed, which limit it reached, or what it waits for to go on, in words."""
    progress: float = 0.0
    """Share of the prompt that has been read, while READING."""
    park: Park | None = None
    """Set while PARKED."""
    reread_tokens: int = 0
    """While READING: tokens that are being read a second time, after a park that kept none of its state."""
    speed: float | None = None
    """While WRITING: tokens a second now, where the figures have those of the whole time; None until that is known."""
    prompt_share_tokens: int = 0
    """While alive: its own tokens that are counted with the prompt, as it was given them to go on with."""
    stats: ReplyStats = field(default_factory=ReplyStats)
    parent_id: int | None = None
    """The message that it answers or follows; None: it begins the chat."""
    attachments: tuple[Attachment, ...] = ()
    calls: tuple[ToolUse, ...] = ()
    """Of a reply: the tools that it calls, and what came of it. What the model says then is a message after it."""

    @property
    def is_asking(self) -> bool:
        """Whether a call waits for the user's word."""
        is_open = self.status is MessageStatus.TOOLS
        return is_open and any(use.state is ToolUseState.ASKED for use in self.calls)


THIS_PROMPT = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCut:
    """The oldest messages of a chat are not given to the model any more: there is no room for them."""

    first_id: int
    """The first message that still is; THIS_PROMPT: the one that this is kept with, which has no id yet."""
    summary: str = ""
    """What stands for those before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedPrompt:
    """What is to be sent when the reply that is being written has ended, a model is ready, or it can be stored."""

    text: str
    attachments: tuple[Attachment, ...] = ()
    waits_for_model: bool = False
    """It was given while none was ready."""
    waits_for_store: bool = False
    """Its turn came while nothing could be stored; it is tried again."""
    is_too_long: bool = False
    """It did not fit the model's window when its turn came, and waits for what the user makes of it."""


def reply_request_id(reply: Message) -> str:
    """What the engine calls the request whose answer is `reply`; another one each time it is gone on with."""
    first = f"chat-{reply.chat_id}-{reply.message_id}"
    return f"{first}-{reply.stats.num_continues}" if reply.stats.num_continues else first


def summary_request_id(number: int) -> str:
    """What the engine calls a request that sums up the beginning of a chat."""
    return f"{_SUMMARY}{number}"


def is_summary(request_id: str) -> bool:
    """Whether a request is one of these."""
    return request_id.startswith(_SUMMARY)


def ids_of_request(request_id: str) -> tuple[int, int] | None:
    """Chat and message of a `reply_request_id`; None if it is none."""
    found = _REPLY_ID.fullmatch(request_id)
    return (int(found[1]), int(found[2])) if found else None


@dataclass(slots=True, eq=False)
class Conversation:
    """One chat. `messages` is the version of it that is shown; empty until the chat is opened (`is_loaded`)."""

    chat_id: int
    """Below zero for a temporary chat."""
    title: str
    created_s: float
    updated_s: float
    settings: ChatSettings = field(default_factory=ChatSettings)
    preset_id: int | None = None
    """The preset that the settings were taken from last."""
    folder_id: int | None = None
    is_pinned: bool = False
    is_archived: bool = False
    deleted_s: float | None = None
    """When it was deleted; it can be brought back until it is purged."""
    tools: ChatTools = field(default_factory=ChatTools)
    draft: str = ""
    draft_attachments: tuple[Attachment, ...] = ()
    queued: QueuedPrompt | None = None
    messages: list[Message] = field(default_factory=list)
    """Change it through `append`, `show` and the tree only."""
    tree: MessageTree = field(default_factory=MessageTree)
    """All versions."""
    leaf_id: int | None = None
    """The last message of those shown, also before the chat is opened."""
    is_loaded: bool = False
    has_unread: bool = False
    """A reply ended while the chat was not on screen."""
    stored_status: MessageStatus | None = None
    """Of the last message as it was read with the list of chats; see `last_status`."""
    stored_note: str = ""
    """The same; see `last_note`."""

    @property
    def is_temporary(self) -> bool:
        """Whether nothing of it is ever stored."""
        return self.chat_id < 0

    @property
    def draft_beginning(self) -> str:
        """What the draft begins with, on one line; of files alone, their names, once the chat is opened."""
        names = ", ".join(one.name for one in self.draft_attachments)
        return (one_line(self.draft[:_BEGINNING_CHARS]) or names)[:_BEGINNING_CHARS]

    def append(self, message: Message) -> None:
        """Add a new message to the end of those shown, whatever its `parent_id` was."""
        message.parent_id = self.messages[-1].message_id if self.messages else None
        self.tree.add(message)
        self.messages.append(message)
        self.leaf_id = message.message_id

    def show(self, leaf: Message | None) -> None:
        """Show the version that ends with this message; None: the empty beginning."""
        self.messages = self.tree.path_to(leaf)
        self.leaf_id = leaf.message_id if leaf is not None else None

    def versions_of(self, message: Message) -> tuple[Message, ...]:
        """A message and its other versions, oldest first; its place among them is the 2 of 2/3."""
        return self.tree.versions_of(message)

    @property
    def cut(self) -> ContextCut | None:
        """What of the messages shown is not given to the model; None: nothing is kept from it."""
        for message in reversed(self.messages):
            if (first_id := message.stats.reads_from_id) is not None:
                first_id = message.message_id if first_id == THIS_PROMPT else first_id
                return ContextCut(first_id=first_id, summary=message.stats.summary)
        return None

    @property
    def is_asking(self) -> bool:
        """Whether it waits for the user's word on a call; one that was not read yet does if it ended with calls."""
        if not self.messages:
            return self.last_status is MessageStatus.TOOLS
        return self.messages[-1].is_asking

    @property
    def last_status(self) -> MessageStatus | None:
        """How the last message stands, also before the chat is opened; None if there is none."""
        if self.messages:
            return self.messages[-1].status
        return None if self.is_loaded else self.stored_status

    @property
    def last_note(self) -> str:
        """The note of the last message, also before the chat is opened; empty if there is none."""
        if self.messages:
            return self.messages[-1].note
        return "" if self.is_loaded else self.stored_note

    @property
    def request_id(self) -> str | None:
        """What the engine calls the running reply; None if there is none."""
        reply = self.running_message
        return reply_request_id(reply) if reply is not None else None

    @property
    def running_message(self) -> Message | None:
        """The reply being queued, read, written or parked, or whose tools are not done, if there is one."""
        if self.messages and self.messages[-1].status.is_alive:
            return self.messages[-1]
        return None
