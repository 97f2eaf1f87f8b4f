"""Connectors of files: FileStream, a directory of files, and the tail of a log that rotates."""
