"""The audit: reports of counts, the service, and the counter of a cluster."""
