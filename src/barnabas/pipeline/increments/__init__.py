"""Changes between versions of tables, and which rows of a query that can change."""
