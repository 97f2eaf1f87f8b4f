"""Connections: bytes in, requests handed to handlers, responses out in order; listeners and their limits."""
