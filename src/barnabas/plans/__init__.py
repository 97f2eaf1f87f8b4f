"""Streaming plans: what a topology or a statement becomes, and the interpreter that runs it record by
record."""
