"""Serving: merged views in an indexed store, answered over HTTP and SQL in milliseconds."""
