"""Tools for transactions: list, describe, find hanging ones and end them."""
