"""Consumer groups: members, generations and committed offsets of one partition of `__consumer_offsets`. No
I/O.

`shard` takes requests and returns outcomes. `classic/` and `consumer/` hold one protocol each, `offsets/` the
committed offsets, `basics/records` the form in the log.
Does not know: the log, sockets, the clock, authorization.
"""
