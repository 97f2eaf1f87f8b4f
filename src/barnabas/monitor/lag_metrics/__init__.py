"""Consumer lag as metrics, in the names of several exporters."""
