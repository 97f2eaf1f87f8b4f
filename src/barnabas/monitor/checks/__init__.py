"""What alerts and `health` look at: facts of a cluster and of the services around it, measured as
findings."""
