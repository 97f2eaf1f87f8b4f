"""Types, casts and schemas of SQL."""
