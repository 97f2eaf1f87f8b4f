"""One partition's registration: replicas, in-sync replicas, leader, and epochs.

In: PartitionRecord, PartitionChangeRecord. Out: an immutable registration, and the record that describes it.
It is a named tuple because clusters have tens of thousands of them: creating a dataclass takes five times as
long.
Does not know: the topic's name, which brokers are alive.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.metadata.versions import DIRECTORY_ASSIGNMENT, ELIGIBLE_LEADER_REPLICAS
from barnabas.protocol import NULL_UUID
from barnabas.protocol.log_records.metadata import PartitionChangeRecord, PartitionRecord

NO_LEADER = -1
NO_LEADER_CHANGE = -2

# Leader recovery states (KIP-704).
RECOVERED = 0
RECOVERING = 1
NO_RECOVERY_CHANGE = -1

# Directory ids with a meaning of their own (KIP-858); ids below 100 are reserved.
UNASSIGNED_DIRECTORY = NULL_UUID
LOST_DIRECTORY = (1).to_bytes(16, "big")
MIGRATING_DIRECTORY = (2).to_bytes(16, "big")
FIRST_FREE_DIRECTORY = 100


class PartitionRegistration(NamedTuple):
    replicas: tuple[int, ...]
    directories: tuple[bytes, ...]  # one for each replica
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    leader_recovery_state: int = RECOVERED
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    def directory_of(self, replica: int) -> bytes:
        """The directory in which a replica keeps this partition; LOST_DIRECTORY for a broker that holds
        none."""
        try:
            return self.directories[self.replicas.index(replica)]
        except (ValueError, IndexError):
            return LOST_DIRECTORY

    def merge(self, change: PartitionChangeRecord) -> PartitionRegistration:
        """This registration after a change. Naming a leader, even the same one, starts a new leader epoch."""
        replicas = self.replicas if change.replicas is None else tuple(change.replicas)
        directories = self.directories
        if change.directories is not None:
            directories = tuple(change.directories)
        elif change.replicas is not None:
            directories = tuple(
                self.directory_of(replica) if replica in self.replicas else UNASSIGNED_DIRECTORY
                for replica in replicas
            )
        leads = change.leader != NO_LEADER_CHANGE
        keeps_recovery = change.leader_recovery_state == NO_RECOVERY_CHANGE
        return PartitionRegistration(
            replicas,
            directories,
            self.isr if change.isr is None else tuple(change.isr),
            change.leader if leads else self.leader,
            self.leader_epoch + 1 if leads else self.leader_epoch,
            self.partition_epoch + 1,
            self.leader_recovery_state if keeps_recovery else change.leader_recovery_state,
            self.removing_replicas if change.removing_replicas is None else tuple(change.removing_replicas),
            self.adding_replicas if change.adding_replicas is None else tuple(change.adding_replicas),
            self.elr if change.eligible_leader_replicas is None else tuple(change.eligible_leader_replicas),
            self.last_known_elr if change.last_known_elr is None else tuple(change.last_known_elr),
        )

    def to_record(self, topic_id: bytes, partition: int, level: int) -> PartitionRecord:
        """The record that describes this partition, as far as the cluster's `metadata.version` can."""
        has_elr = level >= ELIGIBLE_LEADER_REPLICAS
        return PartitionRecord(
            partition_id=partition,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing_replicas),
            adding_replicas=list(self.adding_replicas),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories) if level >= DIRECTORY_ASSIGNMENT else [],
            eligible_leader_replicas=list(self.elr) if has_elr and self.elr else None,
            last_known_elr=list(self.last_known_elr) if has_elr and self.last_known_elr else None,
        )


def registration(record: PartitionRecord) -> PartitionRegistration:
    replicas = tuple(record.replicas)
    return PartitionRegistration(
        replicas,
        # Records from before directory assignment (3.7-IV2) have none.
        tuple(record.directories) or (MIGRATING_DIRECTORY,) * len(replicas),
        tuple(record.isr),
        record.leader,
        record.leader_epoch,
        record.partition_epoch,
        record.leader_recovery_state,
        tuple(record.removing_replicas),
        tuple(record.adding_replicas),
        tuple(record.eligible_leader_replicas or ()),
        tuple(record.last_known_elr or ()),
    )


def is_online(directory_id: bytes, log_dirs: tuple[bytes, ...]) -> bool:
    """Whether a replica's directory is one of its broker's. An unassigned replica may be in any of them."""
    if directory_id in log_dirs or directory_id in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
        return True
    return not log_dirs and directory_id != LOST_DIRECTORY


def is_reserved_directory(directory_id: bytes) -> bool:
    return int.from_bytes(directory_id, "big") < FIRST_FREE_DIRECTORY
