"""What a log knows from its files when it is first asked: leader epochs and producers.

In: a log. Out: objects that the log has not seen yet. Any thread may load them; `LogTail.__getattr__` decides
whose the log takes.
Does not know: who asks.
"""

import logging
from typing import TYPE_CHECKING

from barnabas.replication.leader_epochs import LeaderEpochs
from barnabas.storage.files import checkpoints
from barnabas.storage.logs import producer_snapshots

if TYPE_CHECKING:
    from barnabas.replication.producers import ProducerStates
    from barnabas.storage.logs.log_tail import LogTail

logger = logging.getLogger(__name__)


def load_epochs(log: "LogTail") -> LeaderEpochs:
    """The leader epochs from their checkpoint, or from every batch if that is damaged."""
    try:
        epochs = checkpoints.load_epochs(log.context.disk, log.directory)
    except checkpoints.CorruptCheckpoint as error:
        logger.warning("Leader epochs of %s are damaged (%s): reading the log for them", log.directory, error)
        epochs = LeaderEpochs()
        for segment in log.segments:
            for _, header in segment.headers():
                if header.partition_leader_epoch > epochs.latest_epoch:
                    epochs.assign(header.partition_leader_epoch, header.base_offset)
        log.epochs_dirty = True
    if epochs.truncate_from_start(log.log_start_offset):  # stored before the log's start moved
        log.epochs_dirty = True
    return epochs


def load_producers(log: "LogTail") -> "ProducerStates":
    """The producers as of what is written; snapshots of what is gone go too."""
    for offset in producer_snapshots.offsets(log.context, log.directory):
        if offset > log.written_offset:
            producer_snapshots.delete(log.context, log.directory, offset)
    return producer_snapshots.load(
        log.context, log.directory, log.segments, log.log_start_offset, log.written_offset
    )
