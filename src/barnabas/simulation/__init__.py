"""Deterministic simulation of real nodes: virtual time, network and disks in memory, faults, histories,
checks."""
