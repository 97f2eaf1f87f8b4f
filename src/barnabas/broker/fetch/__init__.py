"""Fetch requests of consumers and followers, served at once or when there are enough records."""
