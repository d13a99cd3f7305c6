"""What a start of the window brings once that is seen: the engine, the model, downloads. GUI thread, asyncio, no Qt.

Used by the composition root.
"""

from __future__ import annotations

import asyncio
import gc
from contextlib import nullcontext

from engine.late_engine import LateEngine
from studio.models.settings import Settings
from studio.models.what_ran import WhatRan
from studio.views.ports import WindowServices


def usual_start(settings: Settings) -> WhatRan:
    """What a start brings that has no other one to go on from."""
    return WhatRan(model=settings.engine.model, has_server=settings.server.is_enabled)


async def bring_back(
    services: WindowServices, engine: LateEngine, wanted: WhatRan, is_seen: asyncio.Event
) -> None:
    """All but the server and windows, once the window is seen; from the first moment on a model is expected."""
    with services.models.expecting() if wanted.model else nullcontext():
        await is_seen.wait()
        await asyncio.to_thread(engine.make)
        gc.collect()
        gc.freeze()  # what is there now stays: a collection need not walk it while somebody scrolls
        for download_id in wanted.download_ids:
            await services.downloads.go_on(download_id)
        if wanted.model:
            await services.models.load(wanted.model)
    await services.models.refresh()
