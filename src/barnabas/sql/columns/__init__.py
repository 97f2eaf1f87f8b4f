"""SQL's formats, expressions and aggregates over columns."""
