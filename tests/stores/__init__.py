"""Servers of stores for the tests of connectors: Redis of Debian, others as jars of Maven Central."""
