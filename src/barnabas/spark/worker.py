"""A Python worker of Spark that is used for task after task.

Spark's daemon collects garbage after every task, and walks over every object for it: with numba, pyarrow and
pyspark loaded that takes a tenth of a second, more than many a micro-batch. What is loaded after the first
task stays, so it is taken out of the collector's sight.
Does not know: what tasks do.
"""

from __future__ import annotations

import gc

_is_settled = False


def settle() -> None:
    """To be called at the end of a task; does something once a process."""
    global _is_settled
    if not _is_settled:
        _is_settled = True
        gc.collect()
        gc.freeze()
