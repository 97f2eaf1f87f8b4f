"""The quorum that keeps `__cluster_metadata`: who votes, who leads, what is committed. No I/O.

`election_state` is what a node must keep across restarts, `voters` names the voters, `election` is how a node
becomes leader, `member` runs elections, `leader` tracks how far voters have replicated the log,
`snapshot_ids` names snapshots and chooses which to delete.
Does not know: files, sockets, time, or what the records in the log mean.
"""
