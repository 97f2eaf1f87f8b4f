"""Workers of Connect, started in the foreground."""
