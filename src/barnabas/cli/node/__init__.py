"""Tools for nodes of this machine: start, stop, format, check the host, a local cluster."""
