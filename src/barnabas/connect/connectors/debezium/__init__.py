"""Debezium's change events: envelopes, topics, lists of tables and columns."""
