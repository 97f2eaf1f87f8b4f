"""Compaction: what stays of a log, and that it is the same log."""
