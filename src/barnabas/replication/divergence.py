"""Where a follower's log and its leader's part: what the follower has to cut off (KIP-101, KIP-279, KIP-595).

In: the follower's leader epochs and log end, and the leader's answer: the largest epoch it knows up to the
one that the follower asked with, and where that epoch ends. Out: the offset to truncate to. If the follower
does not know that epoch, the next fetch asks again with an older one.
Does not know: logs, how the leader was asked.
"""

from barnabas.replication.leader_epochs import UNDEFINED_EPOCH, LeaderEpochs


def truncation_offset(epochs: LeaderEpochs, log_end_offset: int, epoch: int, end_offset: int) -> int:
    """Where the follower's log goes on; at most `log_end_offset`."""
    known_epoch, known_end = epochs.end_offset_for(epoch, log_end_offset)
    if known_epoch == UNDEFINED_EPOCH:
        return min(end_offset, log_end_offset)
    if known_epoch != epoch:
        return min(known_end, log_end_offset)
    return min(known_end, end_offset, log_end_offset)
