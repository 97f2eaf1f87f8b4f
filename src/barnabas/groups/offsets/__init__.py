"""Committed offsets: requests about them, transactions, expiry, deleted topics."""
