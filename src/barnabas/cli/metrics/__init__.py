"""Tools that read a broker's metrics."""
