"""Kafka Streams in Python: topologies, serdes, a test driver, and what runs them on Spark."""
