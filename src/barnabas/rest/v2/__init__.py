"""API v2 of the REST proxy: topics, produced records, consumer instances."""
