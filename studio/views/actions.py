"""Every command of the window as data: its words, its keys, its menu, when it can be used. Plain values.

To add a command: a member of CommandId, a row in COMMANDS, its function in MainWindow, and its place in
`chat_window_commands`. No bare key destroys anything: Delete can be taken back, and works only while the list of chats
has the focus. `menu_actions` makes Qt's actions of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from studio.models.settings import Theme


class CommandId(Enum):
    """What the user can ask the window for."""

    NEW_CHAT = "new_chat"
    NEW_TEMPORARY = "new_temporary"
    NEW_FOLDER = "new_folder"
    DUPLICATE_CHAT = "duplicate_chat"
    PIN_CHAT = "pin_chat"
    ARCHIVE_CHAT = "archive_chat"
    UNDO = "undo"
    ARCHIVED = "archived"
    INSPECTOR = "inspector"
    OWN_WINDOW = "own_window"
    COMPARE = "compare"
    RENAME_CHAT = "rename_chat"
    DELETE_CHAT = "delete_chat"
    STOP = "stop"
    ANSWER_TOOL = "answer_tool"
    ANSWER_AGAIN = "answer_again"
    CONTINUE = "continue"
    GO_FIRST = "go_first"
    PARK = "park"
    NEVER_PARK = "never_park"
    SETTINGS = "settings"
    QUIT = "quit"
    SEARCH = "search"
    FIND = "find"
    NEXT_CHAT = "next_chat"
    PREVIOUS_CHAT = "previous_chat"
    SIDEBAR = "sidebar"
    POOL = "pool"
    SPLIT = "split"
    CLOSE_PANE = "close_pane"
    NEXT_PANE = "next_pane"
    ZOOM_IN = "zoom_in"
    ZOOM_OUT = "zoom_out"
    ZOOM_USUAL = "zoom_usual"
    THEME_SYSTEM = "theme_system"
    THEME_LIGHT = "theme_light"
    THEME_DARK = "theme_dark"
    CHOOSE_MODEL = "choose_model"
    MODELS = "models"
    SERVER = "server"
    USE_FILE = "use_file"
    USE_FOLDER = "use_folder"
    UNLOAD = "unload"
    PALETTE = "palette"
    SHORTCUTS = "shortcuts"
    EXPORT_CHAT = "export_chat"
    EXPORT_ALL = "export_all"
    IMPORT = "import"
    ATTACH = "attach"
    LOG_BUNDLE = "log_bundle"
    PRIVACY = "privacy"
    ABOUT = "about"


class Menu(Enum):
    """The menus, in their order."""

    FILE = "&File"
    CHAT = "&Chat"
    VIEW = "&View"
    MODEL = "&Model"
    HELP = "&Help"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowState:
    """What commands depend on."""

    has_chat: bool = False
    can_export: bool = False
    """There is a message in it."""
    can_undo: bool = False
    is_running: bool = False
    """The chat in the active pane has a running reply."""
    is_asking: bool = False
    """It waits for the user's word on a tool."""
    can_answer_again: bool = False
    """Its last message can be answered, or answered again."""
    can_continue: bool = False
    """Its last reply was cut off."""
    is_waiting: bool = False
    """That reply is outside the pool."""
    can_park: bool = False
    """That reply could be parked by hand."""
    is_pinned: bool = False
    """That reply is never parked while anybody else can be."""
    num_chats: int = 0
    num_panes: int = 1
    can_split: bool = True
    has_model: bool = False
    has_sidebar: bool = True
    has_pool_panel: bool = False
    has_inspector: bool = False
    is_own_window: bool = False
    """It is a chat's own window."""
    theme: Theme = Theme.SYSTEM


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One row. `keys` are all keys that do it, the first one shown."""

    id: CommandId
    menu: Menu
    text: str
    keys: tuple[str, ...] = ()
    is_enabled: Callable[[WindowState], bool] = lambda state: True
    is_checked: Callable[[WindowState], bool] | None = None
    """For commands that are on or off."""
    starts_group: bool = False


COMMANDS: tuple[Command, ...] = (
    Command(
        id=CommandId.ATTACH,
        menu=Menu.FILE,
        text="Attach &files…",
        keys=("Ctrl+Shift+A",),
        is_enabled=lambda state: state.has_chat,
    ),
    Command(
        id=CommandId.EXPORT_CHAT,
        menu=Menu.FILE,
        text="E&xport this chat…",
        keys=("Ctrl+Shift+E",),
        is_enabled=lambda state: state.can_export,
        starts_group=True,
    ),
    Command(id=CommandId.EXPORT_ALL, menu=Menu.FILE, text="Export &all chats…"),
    Command(id=CommandId.IMPORT, menu=Menu.FILE, text="&Import chats…"),
    Command(
        id=CommandId.SETTINGS,
        menu=Menu.FILE,
        text="Settin&gs…",
        keys=("Ctrl+,",),
        starts_group=True,
    ),
    Command(id=CommandId.QUIT, menu=Menu.FILE, text="&Quit", keys=("Ctrl+Q",), starts_group=True),
    Command(
        id=CommandId.NEW_CHAT, menu=Menu.CHAT, text="&New chat", keys=("Ctrl+N", "Ctrl+Shift+O")
    ),
    Command(
        id=CommandId.NEW_TEMPORARY,
        menu=Menu.CHAT,
        text="New te&mporary chat",
        keys=("Ctrl+Shift+T",),
    ),
    Command(id=CommandId.NEW_FOLDER, menu=Menu.CHAT, text="New &folder", keys=("Ctrl+Shift+N",)),
    Command(id=CommandId.SEARCH, menu=Menu.CHAT, text="&Search chats", keys=("Ctrl+K",)),
    Command(
        id=CommandId.FIND,
        menu=Menu.CHAT,
        text="F&ind in this chat",
        keys=("Ctrl+F",),
        is_enabled=lambda state: state.has_chat,
    ),
    Command(
        id=CommandId.RENAME_CHAT,
        menu=Menu.CHAT,
        text="&Rename chat",
        keys=("F2",),
        is_enabled=lambda state: state.has_chat,
        starts_group=True,
    ),
    Command(
        id=CommandId.DUPLICATE_CHAT,
        menu=Menu.CHAT,
        text="D&uplicate chat",
        is_enabled=lambda state: state.has_chat,
    ),
    Command(
        id=CommandId.PIN_CHAT,
        menu=Menu.CHAT,
        text="Pin chat to the t&op",
        is_enabled=lambda state: state.has_chat,
    ),
    Command(
        id=CommandId.ARCHIVE_CHAT,
        menu=Menu.CHAT,
        text="Arc&hive chat",
        is_enabled=lambda state: state.has_chat,
    ),
    Command(
        id=CommandId.DELETE_CHAT,
        menu=Menu.CHAT,
        text="&Delete chat",
        is_enabled=lambda state: state.has_chat,
    ),
    Command(
        id=CommandId.UNDO,
        menu=Menu.CHAT,
        text="Ta&ke back what was done last",
        keys=("Ctrl+Z",),
        is_enabled=lambda state: state.can_undo,
    ),
    Command(
        id=CommandId.STOP,
        menu=Menu.CHAT,
        text="S&top the reply",
        keys=("Esc",),
        is_enabled=lambda state: state.is_running,
        starts_group=True,
    ),
    Command(
        id=CommandId.ANSWER_TOOL,
        menu=Menu.CHAT,
        text="&Answer the question about a tool",
        keys=("Ctrl+Shift+Y",),
        is_enabled=lambda state: state.is_asking,
    ),
    Command(
        id=CommandId.ANSWER_AGAIN,
        menu=Menu.CHAT,
        text="Ans&wer again",
        keys=("Ctrl+R",),
        is_enabled=lambda state: state.can_answer_again,
    ),
    Command(
        id=CommandId.CONTINUE,
        menu=Menu.CHAT,
        text="&Continue the reply",
        is_enabled=lambda state: state.can_continue,
    ),
    Command(
        id=CommandId.GO_FIRST,
        menu=Menu.CHAT,
        text="&Let it go first",
        keys=("Ctrl+Shift+J",),
        is_enabled=lambda state: state.is_waiting,
    ),
    Command(
        id=CommandId.PARK,
        menu=Menu.CHAT,
        text="&Park now",
        is_enabled=lambda state: state.can_park,
    ),
    Command(
        id=CommandId.NEVER_PARK,
        menu=Menu.CHAT,
        text="N&ever park",
        is_enabled=lambda state: state.can_park,
        is_checked=lambda state: state.is_pinned,
    ),
    Command(
        id=CommandId.SIDEBAR,
        menu=Menu.VIEW,
        text="Side &bar",
        keys=("Ctrl+B",),
        is_checked=lambda state: state.has_sidebar,
    ),
    Command(id=CommandId.ARCHIVED, menu=Menu.VIEW, text="&Archive and deleted"),
    Command(
        id=CommandId.INSPECTOR,
        menu=Menu.VIEW,
        text="Chat se&ttings",
        keys=("Ctrl+Shift+I",),
        is_checked=lambda state: state.has_inspector,
    ),
    Command(
        id=CommandId.POOL,
        menu=Menu.VIEW,
        text="&Pool",
        keys=("Ctrl+Shift+U",),
        is_checked=lambda state: state.has_pool_panel,
    ),
    Command(
        id=CommandId.SPLIT,
        menu=Menu.VIEW,
        text="&Split",
        keys=("Ctrl+\\",),
        is_enabled=lambda state: state.can_split,
    ),
    Command(
        id=CommandId.COMPARE,
        menu=Menu.VIEW,
        text="Co&mpare settings…",
        keys=("Ctrl+Shift+K",),
        is_enabled=lambda state: state.has_chat,
    ),
    Command(
        id=CommandId.OWN_WINDOW,
        menu=Menu.VIEW,
        text="Chat in its own &window",
        keys=("Ctrl+Shift+W",),
        is_enabled=lambda state: state.has_chat,
        is_checked=lambda state: state.is_own_window,
    ),
    Command(
        id=CommandId.CLOSE_PANE,
        menu=Menu.VIEW,
        text="&Close this pane",
        keys=("Ctrl+W",),
        is_enabled=lambda state: state.num_panes > 1,
    ),
    Command(
        id=CommandId.NEXT_PANE,
        menu=Menu.VIEW,
        text="&Other pane",
        keys=("F6",),
        is_enabled=lambda state: state.num_panes > 1,
    ),
    Command(
        id=CommandId.NEXT_CHAT,
        menu=Menu.VIEW,
        text="Ne&xt chat",
        keys=("Ctrl+Tab",),
        is_enabled=lambda state: state.num_chats > 1,
        starts_group=True,
    ),
    Command(
        id=CommandId.PREVIOUS_CHAT,
        menu=Menu.VIEW,
        text="P&revious chat",
        keys=("Ctrl+Shift+Tab",),
        is_enabled=lambda state: state.num_chats > 1,
    ),
    Command(
        id=CommandId.ZOOM_IN,
        menu=Menu.VIEW,
        text="&Zoom in",
        keys=("Ctrl++", "Ctrl+="),
        starts_group=True,
    ),
    Command(id=CommandId.ZOOM_OUT, menu=Menu.VIEW, text="Zoom o&ut", keys=("Ctrl+-",)),
    Command(id=CommandId.ZOOM_USUAL, menu=Menu.VIEW, text="Usual s&ize", keys=("Ctrl+0",)),
    Command(
        id=CommandId.THEME_SYSTEM,
        menu=Menu.VIEW,
        text="Colours of the d&esktop",
        is_checked=lambda state: state.theme is Theme.SYSTEM,
        starts_group=True,
    ),
    Command(
        id=CommandId.THEME_LIGHT,
        menu=Menu.VIEW,
        text="&Light",
        is_checked=lambda state: state.theme is Theme.LIGHT,
    ),
    Command(
        id=CommandId.THEME_DARK,
        menu=Menu.VIEW,
        text="&Dark",
        is_checked=lambda state: state.theme is Theme.DARK,
    ),
    Command(id=CommandId.CHOOSE_MODEL, menu=Menu.MODEL, text="&Choose a model", keys=("Ctrl+L",)),
    Command(
        id=CommandId.MODELS, menu=Menu.MODEL, text="&Models and downloads…", keys=("Ctrl+Shift+M",)
    ),
    Command(id=CommandId.USE_FILE, menu=Menu.MODEL, text="Use a model &file…", keys=("Ctrl+O",)),
    Command(id=CommandId.USE_FOLDER, menu=Menu.MODEL, text="Use a model f&older…"),
    Command(
        id=CommandId.SERVER,
        menu=Menu.MODEL,
        text="Local &server…",
        keys=("Ctrl+Shift+L",),
        starts_group=True,
    ),
    Command(
        id=CommandId.UNLOAD,
        menu=Menu.MODEL,
        text="&Unload the model",
        is_enabled=lambda state: state.has_model,
    ),
    Command(id=CommandId.PALETTE, menu=Menu.HELP, text="&All commands…", keys=("Ctrl+Shift+P",)),
    Command(id=CommandId.SHORTCUTS, menu=Menu.HELP, text="&Shortcuts", keys=("F1", "Ctrl+/")),
    Command(id=CommandId.PRIVACY, menu=Menu.HELP, text="&Privacy…", starts_group=True),
    Command(id=CommandId.LOG_BUNDLE, menu=Menu.HELP, text="Create &log bundle…"),
    Command(id=CommandId.ABOUT, menu=Menu.HELP, text="A&bout Layby"),
)


def plain(text: str) -> str:
    """A command's words without the mark of its menu key."""
    return text.replace("&&", "\0").replace("&", "").replace("\0", "&").removesuffix("…")
