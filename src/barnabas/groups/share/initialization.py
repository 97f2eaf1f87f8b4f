"""State of new partitions: found when members subscribe, created by the share coordinator, then assigned.

In: a group, the topics that it reads, responses of share coordinators. Out: requests, and the partitions as
they are afterwards. A partition whose initialization failed or took too long is tried again with a later
heartbeat.
Does not know: members, records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.groups.share.group import ShareGroup
from barnabas.groups.share.state import ShareState
from barnabas.groups.share.state_partitions import NO_STATE, StatePartitions, Topics, TopicState, named
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps
from barnabas.metadata.topics import TopicsImage
from barnabas.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest as Request,
)
from barnabas.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateResponse as Response,
)

NO_START_OFFSET = -1  # the leader of the partition chooses, by `share.auto.offset.reset`

StartOffsets = Mapping[bytes, Mapping[int, int]]


def uninitialized(
    state: ShareState, group: ShareGroup, names: Iterable[str], clock: tuple[int, MetadataImage]
) -> Steps[Topics]:
    """The partitions of these topics that have no state, and for which nobody was asked lately."""
    now_ms, image = clock
    states = group.states or NO_STATE
    found: dict[bytes, TopicState] = {}
    for name in sorted(names):
        topic = image.topics.by_name.get(name)
        if topic is None:
            continue
        done: frozenset[int] = frozenset()
        if (known := states.initialized.get(topic.id)) is not None:
            done = known.partitions
        asked = states.initializing.get(topic.id)
        if asked is not None and state.was_asked(group.group_id, topic.id, now_ms):
            done |= asked.partitions
        if len(done) < len(topic.partitions):
            found[topic.id] = TopicState(name, frozenset(topic.partitions) - done)
        yield
    return found


def request(group_id: str, epoch: int, offsets: StartOffsets) -> Request:
    """The request that creates the state of partitions in the group's epoch."""
    return Request(
        group_id=group_id,
        topics=[
            Request.InitializeStateData(
                topic_id=topic_id,
                partitions=[
                    Request.InitializeStateData.PartitionData(
                        partition=number, state_epoch=epoch, start_offset=offsets[topic_id][number]
                    )
                    for number in sorted(offsets[topic_id])
                ],
            )
            for topic_id in sorted(offsets)
        ],
    )


def without_offsets(topics: Topics) -> StartOffsets:
    return {id: dict.fromkeys(topic.partitions, NO_START_OFFSET) for id, topic in topics.items()}


def not_superseded(state: ShareState, group_id: str, epoch: int, response: Response) -> Response:
    """The results of partitions for which no later request is on its way."""
    left = []
    for result in response.results:
        partitions = [
            each
            for each in result.partitions
            if not state.is_superseded(group_id, result.topic_id, each.partition, epoch)
        ]
        left.append(Response.InitializeStateResult(topic_id=result.topic_id, partitions=partitions))
    return Response(results=left)


def finished(states: StatePartitions, response: Response, topics: TopicsImage) -> StatePartitions:
    """The group's partitions after a response: initialized, or as if nobody had asked."""
    done: dict[bytes, frozenset[int]] = {}
    failed: dict[bytes, frozenset[int]] = {}
    for result in response.results:
        for side, is_error in ((done, False), (failed, True)):
            numbers = frozenset(
                each.partition for each in result.partitions if bool(each.error_code) is is_error
            )
            if numbers:
                side[result.topic_id] = numbers
    return states.with_initialized(named(done, topics)).without_initializing(failed)
