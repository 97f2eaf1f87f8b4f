"""The store of an aggregation in windows.

In: windows, formats, how long lookups find a window. Out: a store. Does not know: what is aggregated.
"""

from __future__ import annotations

from barnabas.plans.serdes import Serde
from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.plans.windows import SessionWindows, SlidingWindows, TimeWindows, Windows


def window_store(
    name: str, windows: Windows, key: Serde, value: Serde, retention_ms: int | None = None
) -> StoreSpec:
    """The store of an aggregation in windows."""
    size = windows.size_ms if isinstance(windows, TimeWindows) else 0
    size = windows.difference_ms if isinstance(windows, SlidingWindows) else size
    return StoreSpec(
        name,
        StoreKind.SESSION if isinstance(windows, SessionWindows) else StoreKind.WINDOW,
        key,
        value,
        retention_ms=windows.retention_ms if retention_ms is None else retention_ms,
        window_size_ms=size,
        log_config={"cleanup.policy": "compact,delete"},
    )
