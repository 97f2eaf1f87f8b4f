"""One segment: its log file, its indexes, the writer at its end."""
