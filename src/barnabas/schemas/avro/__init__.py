"""Avro schemas: parsed, printed as Avro's Java library prints them, and compared by its rules."""
