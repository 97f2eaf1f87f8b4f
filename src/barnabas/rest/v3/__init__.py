"""API v3 of the REST proxy: resources of a cluster, and records produced one by one or as a stream."""
