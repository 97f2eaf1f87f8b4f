"""Python dataclasses from schemas of all types."""
