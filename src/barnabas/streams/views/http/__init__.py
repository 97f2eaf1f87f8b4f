"""Interactive queries over HTTP."""
