"""Verifiable clients for system tests: they print what happens to them as JSON events, a line each."""
