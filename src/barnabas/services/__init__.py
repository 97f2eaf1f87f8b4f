"""The frame of all services over HTTP: settings, TLS, callers, errors, limits, metrics, health."""
