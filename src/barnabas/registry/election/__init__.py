"""The election of a registry's primary in a group, and how other nodes send writes to it."""
