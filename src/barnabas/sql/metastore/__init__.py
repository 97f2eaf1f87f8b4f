"""Streams, tables, types and queries that statements have made."""
