"""Schemas of produced records: the registry that knows them, and the ids that a broker has learnt of it."""
