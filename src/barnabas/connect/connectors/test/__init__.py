"""Connectors for tests and courses: made-up data, verifiable source and sink, connectors that fail."""
