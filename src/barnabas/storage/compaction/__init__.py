"""Compaction: a log keeps the last record of every key (`cleanup.policy=compact`).

`cleanable` says how dirty a log is, `job` what is to be done, `cleaner` does it in another process
(`worker`) into `.cleaned` files, and `replacing` puts those in the place of what they stand for.
"""
