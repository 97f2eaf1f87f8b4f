"""Shared by reading and writing: client settings, the cluster as workers see it, compiled loops."""
