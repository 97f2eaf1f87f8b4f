"""The base of alerts and `health`: facts of a cluster and of the services around it, measured as
findings."""
