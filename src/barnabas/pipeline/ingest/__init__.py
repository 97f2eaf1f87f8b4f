"""Batches of a source on their way through the zones: raw, staging, trusted, refined, quarantine."""
