"""Quotas of clients and of replication, as the broker applies them."""
