"""The page of downloads: how far each is, with its buttons. GUI thread."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from studio.models.downloads import Download, DownloadState
from studio.views.context import Context
from studio.views.elided_label import ElidedLabel
from studio.views.labels import dress, line
from studio.views.models.model_words import download_words
from studio.views.paged_dialog import page_column, scrolled
from studio.views.words import size, tr

_FULL = 1000


class DownloadsPage(QWidget):
    """`rows` by the download's id; FETCH_ROW is that of the suggested model, which pip brings."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self._context = context
        self._downloads = context.services.downloads
        self._models = context.services.models
        self.rows: dict[str, DownloadRow] = {}
        inner = QWidget(self)
        column = page_column(inner)
        title = QLabel(tr("Downloads"), inner)
        title.setObjectName("heading")
        self.clear = QPushButton(tr("Take finished ones off the list"), inner)
        self.clear.setAutoDefault(False)
        self.clear.clicked.connect(self._downloads.dismiss_done)
        heading = QHBoxLayout()
        heading.addWidget(title)
        heading.addStretch(1)
        heading.addWidget(self.clear)
        self._empty = line(
            tr("Nothing is being downloaded. What you get under “Get models” shows here."),
            "secondary",
            inner,
        )
        self._fetch = _FetchRow(context, inner)
        self._list = QVBoxLayout()
        self._list.setSpacing(8)
        column.addLayout(heading)
        column.addWidget(self._empty)
        column.addWidget(self._fetch)
        column.addLayout(self._list)
        column.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(scrolled(tr("Downloads"), inner, self))
        self._disconnects = (
            self._downloads.changed.connect(self._mark),
            self._models.fetch_changed.connect(self._mark),
        )
        self.refresh()

    def close_page(self) -> None:
        """Follow the services no longer."""
        for disconnect in self._disconnects:
            disconnect()
        self._context.figures.unmark(self.refresh)

    def refresh(self) -> None:
        """Show the list as it is now."""
        downloads = {each.download_id: each for each in self._downloads.downloads}
        for gone in [key for key in self.rows if key not in downloads]:
            self.rows.pop(gone).deleteLater()
        for key, download in downloads.items():
            row = self.rows.get(key)
            if row is None:
                row = self.rows[key] = DownloadRow(self._context, key, self)
                self._list.addWidget(row)
            row.show_download(download)
        self._fetch.refresh()
        self._empty.setVisible(not downloads and self._models.fetching is None)
        self.clear.setEnabled(any(each.state is DownloadState.DONE for each in downloads.values()))

    def _mark(self) -> None:
        self._context.figures.mark(self.refresh)


class DownloadRow(QFrame):
    """One download."""

    def __init__(self, context: Context, download_id: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self._downloads, self._tasks = context.services.downloads, context.tasks
        self._id = download_id
        self._state: DownloadState | None = None
        self._name = ElidedLabel(self)
        self._name.setObjectName("title")
        self._source = ElidedLabel(self)
        self._source.setObjectName("secondary")
        self._words = line("", "secondary", self)
        self._progress = _bar(self)
        self.main = QPushButton(self)
        self.main.setAutoDefault(False)
        self.main.clicked.connect(self._on_main)
        self.cancel = QPushButton(tr("Cancel"), self)
        self.cancel.setAutoDefault(False)
        self.cancel.clicked.connect(lambda: self._tasks.start(self._downloads.cancel(self._id)))
        buttons = (self.main, self.cancel)
        _lay_out(self, (self._name, self._source), buttons, (self._progress, self._words))

    def show_download(self, download: Download) -> None:
        """How far it is."""
        self._state, name = download.state, download.offer.name
        self._name.set_text(name)
        self._source.set_text(download.offer.source)
        self._words.setText(download_words(download))
        kind = "failed" if download.state is DownloadState.FAILED else "secondary"
        dress(self._words, kind)
        share = download.share
        self._progress.setRange(0, 0 if share is None and download.state.is_busy else _FULL)
        self._progress.setValue(round((share or 0.0) * _FULL))
        is_done = download.state is DownloadState.DONE
        self._progress.setVisible(not is_done)
        self._progress.setAccessibleName(tr("Progress of {model}").format(model=name))
        text = self._main_words()
        self.main.setText(text)
        self.main.setVisible(bool(text))
        self.main.setAccessibleName(f"{text}: {name}")
        self.cancel.setVisible(not is_done)
        self.cancel.setAccessibleName(tr("Cancel: {model}").format(model=name))

    def _main_words(self) -> str:
        match self._state:
            case DownloadState.PAUSED:
                return tr("Go on")
            case DownloadState.FAILED:
                return tr("Try again")
            case DownloadState.DONE | None:
                return ""
        return tr("Pause")

    def _on_main(self) -> None:
        goes_on = self._state in (DownloadState.PAUSED, DownloadState.FAILED)
        work = self._downloads.go_on if goes_on else self._downloads.pause
        self._tasks.start(work(self._id))


class _FetchRow(QFrame):
    """The suggested model, while pip brings it."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self._models = context.services.models
        self._name = ElidedLabel(self)
        self._name.setObjectName("title")
        self._words = line("", "secondary", self)
        self._progress = _bar(self)
        cancel = QPushButton(tr("Cancel"), self)
        cancel.setAutoDefault(False)
        cancel.clicked.connect(self._models.cancel_fetch)
        _lay_out(self, (self._name,), (cancel,), (self._progress, self._words))

    def refresh(self) -> None:
        fetching = self._models.fetching
        self.setVisible(fetching is not None)
        if fetching is not None:
            self._name.set_text(fetching.name)
            self._progress.setAccessibleName(tr("Progress of {model}").format(model=fetching.name))
            self._progress.setRange(0, _FULL)
            self._progress.setValue(round(fetching.share * _FULL))
            done, total = size(fetching.done_bytes), size(fetching.total_bytes)
            self._words.setText(tr("{done} of {total}").format(done=done, total=total))


def _bar(parent: QWidget) -> QProgressBar:
    bar = QProgressBar(parent)
    bar.setTextVisible(False)
    bar.setAccessibleName(tr("Progress"))
    return bar


def _lay_out(
    frame: QFrame,
    texts: Sequence[QWidget],
    buttons: Sequence[QWidget],
    below: Sequence[QWidget],
) -> None:
    """The texts and the buttons share the first line."""
    heading = QHBoxLayout()
    heading.setSpacing(8)
    for text in texts:
        heading.addWidget(text)
    heading.addStretch(1)
    for button in buttons:
        heading.addWidget(button)
    column = QVBoxLayout(frame)
    column.setContentsMargins(16, 12, 12, 12)
    column.setSpacing(6)
    column.addLayout(heading)
    for widget in below:
        column.addWidget(widget)
