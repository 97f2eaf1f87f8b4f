"""The share coordinator: the state of share partitions in one partition of `__share_group_state`. No I/O."""
