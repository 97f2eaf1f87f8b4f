"""Tools for a cluster as a whole: its brokers, its quorum, settings, features, log dirs."""
