"""Shared by all kinds of groups: outcomes, records, deadlines, member ids, settings."""
