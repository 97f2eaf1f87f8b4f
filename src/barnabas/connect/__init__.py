"""Kafka Connect: its API and configuration, with records that travel as Arrow columns."""
