"""What handlers are built from: routes, the context of a request, deferred responses, permissions."""
