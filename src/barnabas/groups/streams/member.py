"""A member of a streams group: one thread of an application, its tasks, and how far it has reconciled.

An immutable value: a heartbeat makes a new one, and the records hold the parts that differ.
Does not know: its group, the target assignment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

from barnabas.groups.streams.tasks import NOTHING_HELD, HeldTasks, task_sets
from barnabas.protocol.log_records.consumer_offsets import (
    StreamsGroupCurrentMemberAssignmentValue as CurrentValue,
)
from barnabas.protocol.log_records.consumer_offsets import StreamsGroupMemberMetadataValue as MemberValue

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
STATIC_LEAVING_EPOCH = -2
NO_TIMEOUT_MS = -1
NO_TOPOLOGY_EPOCH = -1


class MemberState(IntEnum):
    """How far a member has reconciled; the values are those of the records."""

    STABLE = 1
    UNREVOKED_TASKS = 2  # must revoke tasks, and has not confirmed it
    UNRELEASED_TASKS = 3  # waits for tasks that others still run
    UNKNOWN = 127  # written by a newer version

    @classmethod
    def _missing_(cls, value: object) -> MemberState:
        return cls.UNKNOWN


class Endpoint(NamedTuple):
    """The endpoint at which a member serves interactive queries."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMember:
    member_id: str
    epoch: int = JOINING_EPOCH
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = NO_TIMEOUT_MS
    topology_epoch: int = NO_TOPOLOGY_EPOCH
    process_id: str = ""
    endpoint: Endpoint | None = None
    client_tags: tuple[tuple[str, str], ...] = ()  # sorted by key
    assigned: HeldTasks = NOTHING_HELD
    revoking: HeldTasks = NOTHING_HELD

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def moved_to(
        self, epoch: int, state: MemberState, assigned: HeldTasks, revoking: HeldTasks = NOTHING_HELD
    ) -> StreamsMember:
        """The member after one step. `previous_epoch` is the epoch before it, even if that is the same."""
        return replace(
            self, epoch=epoch, previous_epoch=self.epoch, state=state, assigned=assigned, revoking=revoking
        )

    def assignment_epoch(self, subtopology: str, partition: int) -> int | None:
        """The epoch in which the member got the active task; None if it does not run it."""
        found = self.assigned.active.get(subtopology, {}).get(partition)
        return found if found is not None else self.revoking.active.get(subtopology, {}).get(partition)

    def with_metadata(self, value: MemberValue) -> StreamsMember:
        endpoint = value.user_endpoint
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
            client_tags=tuple(sorted((tag.key, tag.value) for tag in value.client_tags)),
        )

    def with_assignment(self, value: CurrentValue) -> StreamsMember:
        epoch = value.member_epoch
        return replace(
            self,
            epoch=epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state),
            assigned=HeldTasks(
                with_epochs(value.active_tasks, epoch),
                task_sets(value.standby_tasks),
                task_sets(value.warmup_tasks),
            ),
            revoking=HeldTasks(
                with_epochs(value.active_tasks_pending_revocation, epoch),
                task_sets(value.standby_tasks_pending_revocation),
                task_sets(value.warmup_tasks_pending_revocation),
            ),
        )

    def without_assignment(self) -> StreamsMember:
        return replace(
            self,
            epoch=LEAVING_EPOCH,
            previous_epoch=LEAVING_EPOCH,
            assigned=NOTHING_HELD,
            revoking=NOTHING_HELD,
        )


def with_epochs(recorded: list[CurrentValue.TaskIds], epoch: int) -> dict[str, dict[int, int]]:
    """The active tasks of a record. Records without assignment epochs count with the member's epoch."""
    found: dict[str, dict[int, int]] = {}
    for tasks in recorded:
        epochs = tasks.assignment_epochs
        if not epochs or len(epochs) != len(tasks.partitions):
            epochs = [epoch] * len(tasks.partitions)
        found[tasks.subtopology_id] = dict(zip(tasks.partitions, epochs, strict=True))
    return found
