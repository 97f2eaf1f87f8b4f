"""Serializers and deserializers with schemas of a registry, in Confluent's wire formats."""
