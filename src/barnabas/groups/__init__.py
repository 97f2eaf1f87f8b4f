"""Consumer groups: members, generations and committed offsets of one partition of `__consumer_offsets`. Pure.

`shard` is the door: requests in, `outcome`s out. `classic/` and `consumer/` hold one protocol each, `offsets`
what groups committed, `records` the form in the log.
Does not know: the log, sockets, the clock, who may do what.
"""
