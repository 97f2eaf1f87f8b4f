"""Fixtures for users' tests: a broker in well under a second."""
