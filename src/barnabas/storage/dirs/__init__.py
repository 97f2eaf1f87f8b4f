"""Log dirs: locked, formatted, and which partitions lie in them."""
