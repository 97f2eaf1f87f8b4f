"""Lazy loading of a log's leader epochs and producers from its files.

In: a log. Out: new objects. Any thread may load them; `LogAppender.__getattr__` keeps the first one.
"""

import logging
from typing import TYPE_CHECKING

from barnabas.replication.leader_epochs import LeaderEpochs
from barnabas.storage.files import checkpoints
from barnabas.storage.logs import producer_snapshots

if TYPE_CHECKING:
    from barnabas.replication.producers import ProducerStates
    from barnabas.storage.logs.log_appender import LogAppender

logger = logging.getLogger(__name__)


def load_epochs(log: "LogAppender") -> LeaderEpochs:
    """Load the leader epochs from their checkpoint, or from all batches if the checkpoint is damaged."""
    try:
        epochs = checkpoints.load_epochs(log.context.disk, log.directory)
    except checkpoints.CorruptCheckpoint as error:
        logger.warning(
            "The leader epoch checkpoint of %s is damaged (%s): rebuilding it from the log",
            log.directory,
            error,
        )
        epochs = LeaderEpochs()
        for segment in log.segments:
            for _, header in segment.headers():
                if header.partition_leader_epoch > epochs.latest_epoch:
                    epochs.assign(header.partition_leader_epoch, header.base_offset)
        log.epochs_dirty = True
    if epochs.truncate_from_start(
        log.log_start_offset
    ):  # the log start offset moved after the file was written
        log.epochs_dirty = True
    return epochs


def load_producers(log: "LogAppender") -> "ProducerStates":
    """Load the producers as of `written_offset`. Deletes snapshots beyond it."""
    for offset in producer_snapshots.offsets(log.context, log.directory):
        if offset > log.written_offset:
            producer_snapshots.delete(log.context, log.directory, offset)
    return producer_snapshots.load(
        log.context, log.directory, log.segments, log.log_start_offset, log.written_offset
    )
