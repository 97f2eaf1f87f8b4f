"""Share groups (KIP-932): several members read a partition together, and acknowledge record by record.

`coordinator` decides on heartbeats, `state_partitions` says which partitions have state with the share
coordinator, `offsets` alters and deletes that state. Records and share sessions are with partition leaders.
"""
