"""Converters whose schemas are in a registry: Avro, JSON Schema, Protobuf, with Confluent's settings."""
