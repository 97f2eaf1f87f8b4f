"""Building blocks of handlers: routes, the context of a request, deferred responses, permissions."""
