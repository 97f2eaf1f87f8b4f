"""Shared parts of all tools: reading options, printing, progress, connecting to a cluster."""
