"""Fetching: what consumers and followers read, at once or when enough is there."""
