"""Tests of security: mechanisms, tokens, and clusters that are locked."""
