"""Tools for nodes on this machine: start, stop and format a node, check the host, run a local cluster."""
