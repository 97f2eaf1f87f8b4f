"""The collector of cyclic garbage, as a node wants it: most objects die by reference counts, cycles are rare.

In: nothing. Out: a collector that looks seldom, and never at what start-up made.
"""

from __future__ import annotations

import gc

THRESHOLDS = 50_000, 20, 50


def collect_rarely() -> None:
    """From the start: importing alone would be interrupted a hundred times, in vain."""
    gc.set_threshold(*THRESHOLDS)


def keep_what_is_there() -> None:
    """The few cycles that start-up left stay too: looking for them takes longer than they are worth."""
    gc.freeze()
