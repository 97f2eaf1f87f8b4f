"""The transaction coordinator: transactional ids of one partition of `__transaction_state`. Pure.

`shard` is the door: requests in, `outcome`s out. `states` holds the table of states, `transaction` what is
known of one id, `beginning`, `adding`, `ending` a step of its life each, `records` the form in the log.
Does not know: the log, sockets, the clock, partitions that markers go to, who may do what.
"""
