"""Statements carried out: the port to it, and what stands behind the port."""
