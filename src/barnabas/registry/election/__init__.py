"""Which node of a registry is the primary: elected in a group, and how other nodes send writes to it."""
