"""Clients that count: interceptors of our own client, and classes in place of those of other libraries."""
