"""Tools for groups: list, describe, delete, reset offsets, lag."""
