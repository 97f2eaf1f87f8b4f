"""Settings of the server, and names of properties that sessions may set."""
