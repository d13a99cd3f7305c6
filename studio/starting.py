"""What a start of the window does when the chats cannot be opened: waits for its turn, or asks whether to try again.

GUI thread, before there is any loop.
"""

from __future__ import annotations

from studio.models.errand import Errand
from studio.models.errors import StoreBusy, StoreError
from studio.models.settings import AppearanceSettings
from studio.paths import Paths
from studio.services.history_file import is_free
from studio.services.notice_service import notice_for
from studio.services.store_troubles import notice_while_trying
from studio.views.dialogs.refusal import may_try_again
from studio.views.first_start import Turn, wait_for_turn
from studio.views.single_instance import address_for, hand_over


def turn_after(
    error: StoreError, paths: Paths, errand: Errand, appearance: AppearanceSettings
) -> Turn:
    """FREE: to be tried again. HANDED_OVER: another Layby has the errand. GIVEN_UP: the user has read why not."""
    if not isinstance(error, StoreBusy):
        return Turn.FREE if may_try_again(notice_for(error), appearance) else Turn.GIVEN_UP

    def look() -> Turn | None:
        if hand_over(address_for(paths.data), errand):
            return Turn.HANDED_OVER
        return Turn.FREE if is_free(paths.history_file) else None

    return wait_for_turn(look, notice_while_trying(error), appearance)
