"""Ports to the world (clock, disk, threads) with their real adapters, and the drivers that need them."""
