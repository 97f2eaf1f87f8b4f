"""Two versions of a schema compared in words."""
