"""Keys that a table holds: an index in memory for small tables, a lookup on executors for others."""
