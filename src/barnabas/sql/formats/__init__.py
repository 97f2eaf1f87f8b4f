"""Formats of SQL: rows become bytes, bytes become rows, and schemas of a registry become columns."""
