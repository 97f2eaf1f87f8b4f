"""Alerts and health: what is wrong in a cluster, who is told, what to do."""
