"""Tools for schemas of a registry."""
