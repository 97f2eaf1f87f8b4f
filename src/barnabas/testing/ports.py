"""Ports for brokers of tests: free ones, all different."""

from barnabas.runtime.tcp_ports import free_ports

__all__ = ["free_ports"]
