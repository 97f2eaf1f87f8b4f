"""A counter of a cluster from outside, through the protocol: for clusters that do not count themselves."""
