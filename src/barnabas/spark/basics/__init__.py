"""What reading and writing share: client settings, the cluster as workers see it, compiled loops."""
