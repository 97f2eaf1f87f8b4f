"""Services over HTTP: the schema registry and the REST proxy, started in the foreground."""
