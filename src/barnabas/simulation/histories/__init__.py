"""Histories: what clients do to a node while faults happen, and what must be true of it."""
