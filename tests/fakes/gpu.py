"""For tests of what only a CUDA device has: their marks, and how a model is loaded there."""

from __future__ import annotations

import pytest
import torch

from engine.api import Device

NEEDS_CUDA = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]
ON_CUDA: dict[str, object] = {"device": Device.CUDA}
"""Options of a load."""
