"""The window as a screen reader has it: every accessible object below a widget, and those it could not name."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QWidget

_Role = QAccessible.Role
CONTROLS = frozenset(
    {
        _Role.Button, _Role.ButtonMenu, _Role.ButtonDropDown, _Role.CheckBox, _Role.RadioButton,
        _Role.ComboBox, _Role.EditableText, _Role.SpinBox, _Role.Slider, _Role.List, _Role.Tree,
        _Role.Table, _Role.MenuItem, _Role.PageTab, _Role.Link, _Role.ProgressBar, _Role.Dialog,
        _Role.ListItem,
    }
)  # fmt: skip
"""Roles that somebody can do something with, or has to know of."""


def objects_of(root: QWidget) -> Iterator[QAccessibleInterface]:
    """All accessible objects that are on screen, depth first."""
    interface = QAccessible.queryAccessibleInterface(root)
    stack = [interface] if interface is not None else []
    while stack:
        one = stack.pop()
        state = one.state()
        if not one.isValid() or state.invisible:
            continue
        yield one
        children = (one.child(place) for place in range(one.childCount()))
        stack += [child for child in children if child is not None]


def nameless(root: QWidget) -> list[str]:
    """Controls that have no name, as their role and class."""
    found = []
    for one in objects_of(root):
        widget = one.object()
        is_inner = widget is not None and widget.objectName().startswith("qt_")
        if one.role() in CONTROLS and not is_inner and not _name(one).strip():
            kind = type(widget).__name__ if widget is not None else "?"
            found.append(f"{one.role().name} {kind} {widget.objectName() if widget else ''}")
    return found


def _name(one: QAccessibleInterface) -> str:
    """A combo box or spin box within something named is read with that name."""
    name = one.text(QAccessible.Text.Name)
    parent = one.parent()
    if name or parent is None or one.role() not in {_Role.EditableText, _Role.List}:
        return name
    is_inner = parent.role() in {_Role.SpinBox, _Role.ComboBox}
    return parent.text(QAccessible.Text.Name) if is_inner else ""
