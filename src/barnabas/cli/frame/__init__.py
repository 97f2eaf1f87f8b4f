"""What tools share: reading options, printing, progress, connecting to a cluster."""
