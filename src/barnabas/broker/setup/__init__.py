"""Before the first start: formatting of log dirs, first credentials, the key of secrets."""
