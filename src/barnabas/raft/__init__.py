"""The quorum that keeps `__cluster_metadata`: who votes, who leads, what is committed. Pure.

`election_state` is what a node must never forget, `voters` who may vote, `election` how a node comes to lead,
`leader` what a leader keeps count of, `snapshot_ids` how snapshots are named and which may go.
Does not know: files, sockets, time, or what the records in the log mean.
"""
