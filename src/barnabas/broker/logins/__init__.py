"""Logins: which mechanisms a listener offers, what the cluster knows of users, how this node logs in."""
