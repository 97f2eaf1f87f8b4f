"""Redis: a sink of strings, hashes, JSON, lists, sets and streams, and a source of streams."""
