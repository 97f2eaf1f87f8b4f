"""Traces of sampled requests through produce, replication and fetch; loaded only if a setting asks so."""
