"""Barnabas: event streaming for Python people, speaking Apache Kafka's protocol on disk and on the wire."""

__version__ = "0.1.0"
