"""Callers of services: passwords, tokens, certificates, roles, rates, and clients that log in as them."""
