"""The copy of a run beside the data: timeline and small files, for the host that takes over."""
