"""Tables of the lake: their names and places, Delta's log, and commits that happen once."""
