"""Converters: keys, values and headers between bytes and columns."""
