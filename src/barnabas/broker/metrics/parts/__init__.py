"""What the parts of a broker show: one module for each part, which registers sources with the metrics."""
