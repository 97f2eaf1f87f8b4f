"""Serving: merged views in an indexed store, queried over HTTP and SQL in milliseconds."""
