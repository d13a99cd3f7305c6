"""Under a setting for all models: that the loaded model has a value of its own, and the way there. GUI thread."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from studio.models.settings import setting_field
from studio.services.model_service import ModelService
from studio.views.labels import line
from studio.views.settings.setting_words import value_words
from studio.views.words import tr


class OwnNote(QWidget):
    """Hidden while the setting is what counts. `lead` is called with the setting's key."""

    def __init__(
        self, key: str, models: ModelService, lead: Callable[[str], object], parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._key = key
        self._models = models
        self._text = line("", "waiting", self)
        self.button = QPushButton(tr("Load settings of this model…"), self)
        self.button.setObjectName("lineLink")
        self.button.setAutoDefault(False)
        self.button.clicked.connect(lambda: lead(key))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._text)
        layout.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeading)
        disconnects = (
            models.changed.connect(self._refresh),
            models.load_settings.changed.connect(lambda _model: self._refresh()),
        )
        self.destroyed.connect(lambda: [disconnect() for disconnect in disconnects])
        self._refresh()

    def _refresh(self) -> None:
        value = own_value_words(self._models, self._key)
        self.setVisible(bool(value))
        if value and (model := self._models.model) is not None:
            words = tr("{model} has its own: {value}. That counts each time it is loaded.")
            self._text.setText(words.format(model=model.name, value=value))


def own_value_words(models: ModelService, key: str) -> str:
    """What the loaded model has of its own for this setting; empty where the setting is what counts."""
    if models.model is None:
        return ""
    own = models.load_settings.own_values(models.model.path)
    return value_words(setting_field(key), own[key]) if key in own else ""


def counting_name(models: ModelService, key: str) -> str:
    """The setting's title, with what counts instead where the loaded model has a value of its own."""
    title = tr(setting_field(key).info.title)
    if not (value := own_value_words(models, key)):
        return title
    return tr("{title} ({value}, this model's own)").format(title=title, value=value)
