"""The store of merged views: DuckDB or PostgreSQL."""
