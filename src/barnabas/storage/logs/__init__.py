"""One partition's log: opening, recovery, appends, reads, truncation, retention."""
