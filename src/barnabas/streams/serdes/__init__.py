"""Formats of keys and values."""
