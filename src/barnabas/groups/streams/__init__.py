"""Groups of the streams protocol (KIP-1071): the coordinator assigns tasks of a topology. No I/O.

`coordinator` takes requests. `group` and `member` are the state that the records define. `heartbeat` decides
heartbeats, `topology` and `configuring` know what the application reads and which internal topics it needs,
`assignor` computes the target assignment, `reconciliation` moves a member towards it.
"""
