"""Statements of a request: validated together, then run in order; listings and descriptions."""
