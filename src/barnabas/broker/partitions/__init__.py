"""Partitions of this broker: their log, their state as leader or follower, their rules."""
