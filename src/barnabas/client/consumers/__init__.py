"""Consumers that share the partitions of topics as members of a group."""
