"""Compaction: a log keeps the last record of every key (`cleanup.policy=compact`).

`cleanable` measures how dirty a log is. `job` describes the work. `cleaner` does it in another process
(`worker`) and writes `.cleaned` files. `logs.replacement` swaps those in for the old segments.
"""
