"""Formats of keys and values in JSON: embedded data become the bytes of records, and bytes become data."""
