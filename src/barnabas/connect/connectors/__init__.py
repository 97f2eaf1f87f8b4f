"""Connectors: one room for each system, listed in the room's module `known`."""
