"""Upkeep: retention, cleaning, syncing, log dirs that fail, partitions that move between log dirs."""
