"""The transaction coordinator: transactional ids of one partition of `__transaction_state`. No I/O.

`shard` takes requests and returns outcomes. `states` holds the table of states, `transaction` the state of
one id. `beginning`, `adding` and `ending` decide one phase each. `records` is the form in the log.
Does not know: the log, sockets, the clock, the partitions that markers go to, authorization.
"""
