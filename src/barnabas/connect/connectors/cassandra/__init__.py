"""Cassandra: a sink of rows, with DataStax' mappings or Confluent's tables by schema."""
