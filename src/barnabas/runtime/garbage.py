"""Settings of Python's cyclic garbage collector for a node.

Reference counting frees most objects, and cycles are rare. So the collector runs rarely, and never examines
the objects that were created during start-up.
"""

from __future__ import annotations

import gc

STARTING = 50_000, 20, 50
# The loop waits while the collector examines young objects: 5,000 take half a millisecond, or more with cold
# caches. A smaller number would start a collection in every tick of a busy producer.
# Objects that survive (a request of ten thousand partitions, a loaded shard) are examined once more, three
# times 5,000 at once, and then as rarely as all others.
SERVING = 5_000, 1, 2_500


def collect_rarely() -> None:
    """Call this first: otherwise the collector runs a hundred times during imports, without finding
    garbage."""
    gc.set_threshold(*STARTING)


def freeze_startup_objects() -> None:
    """Exclude all existing objects from collection. The few cycles left by start-up stay in memory."""
    gc.freeze()
    gc.set_threshold(*SERVING)
