"""Metrics of the parts of a broker: one module for each part, which registers sources with the metrics."""
