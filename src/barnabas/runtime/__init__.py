"""Ports to the operating system (clock, disk, sockets, threads) with their real adapters, and process
limits."""
