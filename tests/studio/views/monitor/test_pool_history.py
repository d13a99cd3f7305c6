"""What the lower part of the pool panel makes of the engine's figures."""

from __future__ import annotations

import pytest

from engine.api import EngineSnapshot, KvType, LoadOptions, PoolUsage
from studio.views.monitor.pool_history import gained_bytes

MB = 1_000_000


@pytest.mark.parametrize(
    ("kind", "gained_mb"), [(KvType.F16, 88.2), (KvType.F32, 276.5), (KvType.Q8_0, 0.0)]
)
def test_what_fewer_bytes_a_number_would_add_to_the_pool(kind: KvType, gained_mb: float) -> None:
    pool = PoolUsage(total_pages=100, page_tokens=32, page_bytes=MB)
    snapshot = EngineSnapshot(pool=pool, options=LoadOptions(kv_type=kind))
    assert gained_bytes(snapshot) / MB == pytest.approx(gained_mb, abs=0.1)


def test_without_a_model_nothing_would_be_gained() -> None:
    assert gained_bytes(EngineSnapshot()) == 0
