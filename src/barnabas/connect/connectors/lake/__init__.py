"""Tables of a lake: the sink that appends and upserts, exactly once."""
