"""Counts for the audit: records of the partitions that this broker leads, read from the log, never on the way
in."""
