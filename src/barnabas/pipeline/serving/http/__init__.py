"""The store over HTTP: the service and its client."""
