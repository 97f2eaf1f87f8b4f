"""Burrow's notifiers: its templates and what they send, for the alert service."""
