"""Connectors of object stores and folders: a sink that writes each record once, and a source."""
