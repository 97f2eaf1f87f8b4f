"""One segment: its log file, its indexes, and the writer of the active segment."""
