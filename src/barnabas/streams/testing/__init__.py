"""Topologies run without a broker and without Spark."""
