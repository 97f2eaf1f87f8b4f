"""Log dirs: locking, formatting, and the partitions in them."""
