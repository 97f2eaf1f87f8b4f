"""Groups of the consumer protocol (KIP-848): the coordinator assigns, members reconcile step by step. Pure.

`coordinator` is the door. `group` and `member` are the state that records tell, `heartbeat` decides what a
member hears, `target` who shall read what, `reconciliation` how a member gets there, `leaving` how it goes.
"""
