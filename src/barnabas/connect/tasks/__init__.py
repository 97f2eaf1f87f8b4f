"""Running tasks: loops of sources and sinks, offsets, transactions, errors, dead letters, metrics."""
