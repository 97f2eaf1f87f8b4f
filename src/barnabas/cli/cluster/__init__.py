"""Tools for a whole cluster: its brokers, quorum, settings, features and log dirs."""
