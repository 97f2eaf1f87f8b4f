"""Reporters: they get all metrics of a node every few seconds, each in a thread of its own."""
