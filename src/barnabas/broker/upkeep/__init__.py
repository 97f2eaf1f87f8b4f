"""Background work on logs: retention, cleaning, syncing, failed log dirs, moves between log dirs."""
