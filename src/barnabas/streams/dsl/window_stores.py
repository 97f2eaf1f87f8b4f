"""The store of an aggregation in windows.

In: windows, formats, how long lookups find a window. Out: a store. Does not know: what is aggregated.
"""

from __future__ import annotations

from barnabas.plans.serdes import Serde
from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.plans.windows import SessionWindows, SlidingWindows, TimeWindows, Windows

WINDOWS_A_PAGE = 8
SESSION_PAGES_MAX = 32  # of a key: a late record looks at all pages from its time on


def page_ms_of(windows: Windows, retention_ms: int) -> int:
    """The time that a page of a key covers: a record meets few pages, and a page has few windows."""
    if isinstance(windows, TimeWindows):
        return WINDOWS_A_PAGE * windows.advance_ms
    if isinstance(windows, SlidingWindows):
        return max(windows.difference_ms, 1)
    if isinstance(windows, SessionWindows):
        return max(windows.gap_ms, retention_ms // SESSION_PAGES_MAX)
    return 0


def window_store(
    name: str, windows: Windows, key: Serde, value: Serde, retention_ms: int | None = None
) -> StoreSpec:
    """The store of an aggregation in windows."""
    size = windows.size_ms if isinstance(windows, TimeWindows) else 0
    size = windows.difference_ms if isinstance(windows, SlidingWindows) else size
    kept_ms = windows.retention_ms if retention_ms is None else retention_ms
    return StoreSpec(
        name,
        StoreKind.SESSION if isinstance(windows, SessionWindows) else StoreKind.WINDOW,
        key,
        value,
        retention_ms=kept_ms,
        window_size_ms=size,
        log_config={"cleanup.policy": "compact,delete"},
        page_ms=page_ms_of(windows, kept_ms),
    )
