"""The collector of cyclic garbage, as a node wants it: most objects die by reference counts, cycles are rare.

In: nothing. Out: a collector that looks seldom, and never at what start-up made.
"""

from __future__ import annotations

import gc

STARTING = 50_000, 20, 50
# Young objects are looked at before they are many: 5,000 take half a millisecond, or more
# where the processor's caches are cold, and the loop waits for it. Fewer would be looked at within every
# tick of a busy producer.
# Those that stay (a request of ten thousand partitions, a shard that is loaded) are looked at once more,
# three times 5,000 at once, and then as rarely as the rest.
SERVING = 5_000, 1, 2_500


def collect_rarely() -> None:
    """From the start: importing alone would be interrupted a hundred times, in vain."""
    gc.set_threshold(*STARTING)


def freeze_startup_objects() -> None:
    """The few cycles that start-up left stay too: looking for them takes longer than they are worth."""
    gc.freeze()
    gc.set_threshold(*SERVING)
