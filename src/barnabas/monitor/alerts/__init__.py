"""Alerts without I/O: rules, their states, silences, and which messages are due."""
