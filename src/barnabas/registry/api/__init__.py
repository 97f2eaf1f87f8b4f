"""The registry's API over HTTP: endpoints, bodies and responses."""
