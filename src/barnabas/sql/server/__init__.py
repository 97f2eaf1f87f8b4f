"""The SQL server: statements over HTTP, kept in a command topic."""
