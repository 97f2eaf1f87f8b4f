"""Before the first start: formatting log dirs, first credentials, the key of secrets."""
