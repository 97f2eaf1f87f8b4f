"""The decision about a member's heartbeat in a streams group: its response and its records.

In: a request that passed `validation`. Out: an outcome. In order: find the member, apply what it changed,
configure the topology if topics changed (`configuring`), compute the group's epoch, compute a target if one
is due (`target`), move the member towards it (`reconciliation`).
Does not know: how missing internal topics are created.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.groups.basics.assignment_interval import is_target_due
from barnabas.groups.basics.outcome import Caller, Outcome
from barnabas.groups.basics.records import Entry
from barnabas.groups.streams import entries, target
from barnabas.groups.streams.configuring import ConfiguredTopology, configure
from barnabas.groups.streams.endpoints import endpoints
from barnabas.groups.streams.group import StreamsGroup
from barnabas.groups.streams.joining import find_member, topology_after, with_request
from barnabas.groups.streams.member import JOINING_EPOCH, MemberState, StreamsMember
from barnabas.groups.streams.partition_counts import Status
from barnabas.groups.streams.reconciliation import Goal, reconcile
from barnabas.groups.streams.state import WHOLE_GROUP, Due, StreamsState
from barnabas.groups.streams.tasks import NO_TASKS, HeldTasks, Tasks, TaskSets, task_sets
from barnabas.groups.streams.topology import StreamsTopology
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest as Request
from barnabas.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse as Response

NOT_VALIDATED = -1


@dataclass(slots=True)
class Heartbeat:
    """One heartbeat while it is decided."""

    state: StreamsState
    group: StreamsGroup
    request: Request
    caller: Caller
    image: MetadataImage
    now_ms: int
    is_new_group: bool
    records: list[Entry] = field(default_factory=list)
    statuses: list[Response.Status] = field(default_factory=list)

    def decide(self) -> Steps[Outcome]:
        group, request = self.group, self.request
        reported = reported_by(request)
        before = find_member(self.state, group, request, reported)
        after = with_request(before, request, self.caller)
        is_changed = after != before
        if is_changed:
            self.records.append(entries.member(group.group_id, after))
        topology = topology_after(group, request, self.records)
        if group.topology is not None and after.topology_epoch < group.topology.epoch:
            self.add_status(
                Status.STALE_TOPOLOGY,
                f"The member's topology epoch {after.topology_epoch} is behind the group's topology epoch "
                f"{group.topology.epoch}.",
            )
        configured, metadata_hash = yield from self.configured(topology)
        if configured.is_ready and reported is not None:
            check_tasks(configured, reported)
        epoch = self.next_epoch(is_changed, configured, metadata_hash)
        self.delay_first_assignment()
        goal = yield from self.goal(epoch, after, configured)
        moved = self.move(after, goal, reported)
        group.metadata_is_fresh = True  # last, so that a failure above is retried
        reply = self.respond(before, moved, configured)
        if reply.active_tasks is None and reported is not None and not reported.is_same_as(moved.assigned):
            # The member missed a response. Apache Kafka does not tell it again, so its tasks would wait for
            # the next assignment.
            tell_tasks(reply, moved.assigned)
        return Outcome(records=self.records, reply=reply)

    # The topology and the epoch

    def configured(self, topology: StreamsTopology) -> Steps[tuple[ConfiguredTopology, int]]:
        """The configured topology and the hash of its topics, checked again if topics changed."""
        group = self.group
        known, metadata_hash = group.configured, group.metadata_hash
        if known is not None and group.topology is not None and group.metadata_is_fresh:
            return known, metadata_hash
        metadata_hash = yield from self.state.hashes.of_group_in_steps(topology.required_topics, self.image)
        if known is None or group.topology is None or metadata_hash != group.metadata_hash:
            known = group.configured = yield from configure(topology, self.image)
        return known, metadata_hash

    def next_epoch(self, is_changed: bool, configured: ConfiguredTopology, metadata_hash: int) -> int:
        """The group's epoch: one higher if a member, the topics, their validity or settings changed."""
        group = self.group
        validated = configured.epoch if configured.is_ready else NOT_VALIDATED
        configs = self.state.values(group.group_id, self.image).assignment_configs
        if not (
            is_changed
            or metadata_hash != group.metadata_hash
            or validated != group.validated_topology_epoch
            or configs != group.assignment_configs
        ):
            return group.epoch
        epoch = group.epoch + 1
        self.records.append(entries.epoch(group.group_id, epoch, metadata_hash, validated, configs))
        self.state.rebalances.streams += 1
        return epoch

    # The assignment

    def delay_first_assignment(self) -> None:
        """Wait for more members before the first assignment of an empty group."""
        group_id, timers = self.group.group_id, self.state.timers
        delay_ms = self.state.values(group_id, self.image).initial_rebalance_delay_ms
        if self.group.members or not delay_ms or timers.is_set(Due.FIRST_ASSIGNMENT, group_id, WHOLE_GROUP):
            return
        timers.set(Due.FIRST_ASSIGNMENT, group_id, WHOLE_GROUP, self.now_ms + delay_ms)

    def goal(self, epoch: int, member: StreamsMember, configured: ConfiguredTopology) -> Steps[Goal]:
        group, values = self.group, self.state.values(self.group.group_id, self.image)
        if self.state.timers.is_set(Due.FIRST_ASSIGNMENT, group.group_id, WHOLE_GROUP):
            delayed = "Assignment delayed due to the configured initial rebalance delay."
            self.add_status(Status.ASSIGNMENT_DELAYED, delayed)
            return goal_of(group, member, group.assignment_epoch, NO_TASKS)
        if epoch > group.assignment_epoch:
            if may_assign(group, values.assignment_interval_ms, self.now_ms):
                computed = yield from target.compute(
                    group, epoch, member, configured, values.assignment_configs, self.now_ms
                )
                self.records.extend(computed.records)
                return goal_of(group, member, epoch, computed.tasks[member.member_id])
            delayed = "Assignment delayed due to the configured assignment interval."
            self.add_status(Status.ASSIGNMENT_DELAYED, delayed)
        return goal_of(group, member, group.assignment_epoch, group.target_of(member.member_id))

    def move(self, member: StreamsMember, goal: Goal, reported: Tasks | None) -> StreamsMember:
        if member.is_reconciled_to(goal.epoch):
            return member
        moved = reconcile(member, goal, reported)
        if moved != member:
            group_id, timers = self.group.group_id, self.state.timers
            self.records.append(entries.current(group_id, moved))
            timers.cancel(Due.REBALANCE, group_id, member.member_id)
            if moved.state is MemberState.UNREVOKED_TASKS:
                at_ms = self.now_ms + moved.rebalance_timeout_ms
                timers.set(Due.REBALANCE, group_id, member.member_id, at_ms)
        return moved

    # The response

    def add_status(self, status: Status, detail: str) -> None:
        self.statuses.append(Response.Status(status_code=status, status_detail=detail))

    def respond(
        self, before: StreamsMember, after: StreamsMember, configured: ConfiguredTopology
    ) -> Response:
        group, request = self.group, self.request
        values = self.state.values(group.group_id, self.image)
        at_ms = self.now_ms + values.session_timeout_ms
        self.state.timers.set(Due.SESSION, group.group_id, after.member_id, at_ms)
        if request.shutdown_application and group.shutdown_member_id is None:
            group.shutdown_member_id = after.member_id
        response = Response(
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=values.heartbeat_interval_ms,
        )
        if request.member_epoch == JOINING_EPOCH or before.assigned != after.assigned:
            tell_tasks(response, after.assigned)
            if after.endpoint is not None:
                group.endpoint_epoch += 1
        if group.endpoint_epoch != request.endpoint_information_epoch:
            response.partitions_by_user_endpoint = endpoints(group, after, self.image)
        if not self.is_new_group:
            response.endpoint_information_epoch = group.endpoint_epoch
        if configured.problem is not None:
            self.add_status(configured.problem.status, configured.problem.detail)
        if configured.missing:
            self.state.missing_topics[group.group_id] = configured.missing
        else:
            self.state.missing_topics.pop(group.group_id, None)
        if group.shutdown_member_id is not None:
            self.add_status(
                Status.SHUTDOWN_APPLICATION,
                f"Streams group member {group.shutdown_member_id} encountered a fatal error and requested a "
                "shutdown for the entire application.",
            )
        response.status = self.statuses
        return response


def may_assign(group: StreamsGroup, interval_ms: int, now_ms: int) -> bool:
    """Whether the last target is old enough for a new one."""
    return is_target_due(group.assignment_timestamp_ms, interval_ms, now_ms)


def goal_of(group: StreamsGroup, member: StreamsMember, epoch: int, tasks: Tasks) -> Goal:
    process_id = member.process_id

    def is_active_here(subtopology: str, partition: int) -> bool:
        return group.active_process(subtopology, partition) == process_id

    def is_active_anywhere(subtopology: str, partition: int) -> bool:
        return group.active_process(subtopology, partition) is not None

    def is_copied_here(subtopology: str, partition: int) -> bool:
        return group.is_copied_at(process_id, subtopology, partition)

    return Goal(epoch, tasks, is_active_anywhere, is_active_here, is_copied_here)


def reported_by(request: Request) -> Tasks | None:
    if request.active_tasks is None or request.standby_tasks is None or request.warmup_tasks is None:
        return None
    return Tasks(
        task_sets(request.active_tasks), task_sets(request.standby_tasks), task_sets(request.warmup_tasks)
    )


def check_tasks(configured: ConfiguredTopology, reported: Tasks) -> None:
    """Raise KafkaError if a member reports tasks that the topology does not have."""
    subtopologies = configured.subtopologies or {}
    for tasks in (reported.active, reported.standby, reported.warmup):
        for name, numbers in tasks.items():
            subtopology = subtopologies.get(name)
            if subtopology is None:
                message = f"Subtopology {name} does not exist in the topology."
                raise KafkaError(ErrorCode.INVALID_REQUEST, message)
            for number in sorted(numbers):
                if not 0 <= number < subtopology.task_count:
                    message = (
                        f"Task {number} for subtopology {name} is invalid. Number of tasks for this "
                        f"subtopology: {subtopology.task_count}"
                    )
                    raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def tell_tasks(response: Response, tasks: HeldTasks) -> None:
    def ids(sets: TaskSets | Mapping[str, Mapping[int, int]]) -> list[Response.TaskIds]:
        return [Response.TaskIds(subtopology_id=name, partitions=sorted(sets[name])) for name in sorted(sets)]

    response.active_tasks = ids(tasks.active)
    response.standby_tasks = ids(tasks.standby)
    response.warmup_tasks = ids(tasks.warmup)
