"""Groups of the consumer protocol (KIP-848): the coordinator assigns, members reconcile step by step. No I/O.

`coordinator` takes requests. `group` and `member` are the state that the records define. `heartbeat` decides
heartbeats, `target` computes the target assignment, `reconciliation` moves a member towards it, `leaving`
removes members.
"""
