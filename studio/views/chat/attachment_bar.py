"""The files that go with the next message: a chip for each, with what it costs, above the field. GUI thread.

Must not import services.
"""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from studio.models.attachment import Attachment, AttachmentKind
from studio.models.one_line import one_line
from studio.views.elided_label import ElidedLabel
from studio.views.flow_layout import FlowLayout
from studio.views.icon_button import IconButton
from studio.views.words import plural, tokens, tr

_NAME_EMS = 28
_GAP_PX = 6


class AttachmentBar(QWidget):
    """Hidden while there is nothing in it. `remove_wanted` carries the attachment."""

    remove_wanted = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Files for the message"))
        self._shown: tuple[Attachment, ...] = ()
        self._row = QWidget(self)
        self._flow = FlowLayout(self._row, _GAP_PX)
        self._chips: list[_Chip] = []
        self._sum = QLabel(self)
        self._sum.setObjectName("secondary")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 0, 4, 4)
        layout.setSpacing(4)
        layout.addWidget(self._row)
        layout.addWidget(self._sum)
        self.hide()

    def show_files(self, files: tuple[Attachment, ...], num_reading: int) -> None:
        """Show these, and how many more are being read."""
        if files != self._shown:
            self._shown = files
            for chip in self._chips:
                self._flow.removeWidget(chip)
                chip.deleteLater()
            self._chips = [self._make_chip(file) for file in files]
        self._sum.setText(_sum_words(files, num_reading))
        self._sum.setVisible(num_reading > 0 or len(files) > 1)
        self.setVisible(bool(files) or num_reading > 0)
        self.updateGeometry()

    def _make_chip(self, file: Attachment) -> _Chip:
        chip = _Chip(file, self._row)
        chip.remove.clicked.connect(lambda: self.remove_wanted.emit(file))
        self._flow.addWidget(chip)
        chip.show()
        return chip


class _Chip(QFrame):
    """One file: name, cost, and a button that takes it out again."""

    def __init__(self, file: Attachment, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("chip")
        name = ElidedLabel(self, Qt.TextElideMode.ElideMiddle)
        name.set_text(one_line(file.name))
        name.setMaximumWidth(_NAME_EMS * self.fontMetrics().height())
        cost = QLabel(cost_words(file), self)
        cost.setObjectName("secondary")
        self.remove = IconButton("close", tr("Remove {name}").format(name=file.name), self)
        self.remove.setObjectName("small")
        self.remove.setIconSize(QSize(14, 14))
        self.setToolTip(file.path or file.name)
        self.setAccessibleName(f"{file.name}, {cost_words(file)}")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(10, 2, 4, 2)
        layout.setSpacing(8)
        layout.addWidget(name)
        layout.addWidget(cost)
        layout.addWidget(self.remove)


def cost_words(file: Attachment) -> str:
    """ "PDF · 1,240 tokens"."""
    kinds = {
        AttachmentKind.TEXT: tr("Text"),
        AttachmentKind.CODE: tr("Code"),
        AttachmentKind.PDF: "PDF",
        AttachmentKind.DOCX: "Word",
        AttachmentKind.IMAGE: tr("Picture"),
    }
    kind = kinds[file.kind]
    if file.num_tokens is None:
        return tr("{kind} · not counted yet").format(kind=kind)
    return f"{kind} · {tokens(file.num_tokens)}"


def _sum_words(files: tuple[Attachment, ...], num_reading: int) -> str:
    parts = []
    if files:
        costs = [file.num_tokens for file in files]
        parts.append(plural(len(files), "1 file", "{count} files"))
        if None not in costs:
            parts.append(tokens(sum(cost or 0 for cost in costs)))
    if num_reading:
        parts.append(plural(num_reading, "reading 1 file…", "reading {count} files…"))
    return " · ".join(parts)
