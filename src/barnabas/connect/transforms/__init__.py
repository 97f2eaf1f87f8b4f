"""Transforms and predicates of records, as expressions over columns."""
