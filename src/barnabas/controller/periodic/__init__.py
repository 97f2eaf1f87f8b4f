"""Decisions that the active controller makes by itself at intervals."""
