"""Divergence: the offset to which a follower has to truncate its log (KIP-101, KIP-279, KIP-595).

In: the follower's leader epochs and log end offset, and from the leader's response the largest epoch that the
leader knows, not above the follower's, with its end offset. Out: the offset to truncate to. If the follower
does not know that epoch, its next fetch asks again with an older one.
Does not know: logs, requests.
"""

from barnabas.replication.leader_epochs import UNDEFINED_EPOCH, LeaderEpochs


def truncation_offset(epochs: LeaderEpochs, log_end_offset: int, epoch: int, end_offset: int) -> int:
    """The offset at which the follower's log continues; at most `log_end_offset`."""
    known_epoch, known_end = epochs.end_offset_for(epoch, log_end_offset)
    if known_epoch == UNDEFINED_EPOCH:
        return min(end_offset, log_end_offset)
    if known_epoch != epoch:
        return min(known_end, log_end_offset)
    return min(known_end, end_offset, log_end_offset)
