"""The tool for transactions: list, describe, find hanging ones and abort them."""
