"""ShareAcknowledge requests: checked, and responded to when the acknowledgements are stored (KIP-932).

In: a request. Out: its response, now or later. The final epoch of a session releases what its member has not
acknowledged. Does not know: what acknowledgements change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.api.deferred import Deferred
from barnabas.broker.shares.acknowledgements import Acknowledging, message_of
from barnabas.broker.shares.fetch_requests import check_member
from barnabas.broker.shares.share_fetch import NAMES_LEADER
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from barnabas.shares.sessions.share_sessions import FINAL_EPOCH, INITIAL_EPOCH, ShareSession

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext

Topic = ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse
PartitionData = Topic.PartitionData


def serve(request: ShareAcknowledgeRequest, context: RequestContext) -> ShareAcknowledgeResponse | Deferred:
    shares = context.broker.shares
    try:
        if shares.is_switched_off:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        key = check_member(request.group_id, request.member_id)
        if request.share_session_epoch == INITIAL_EPOCH:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session = shares.sessions.use(key, request.share_session_epoch)
    except KafkaError as error:
        return ShareAcknowledgeResponse(error_code=error.code)
    acknowledging = Acknowledging(context, key.member)
    acknowledging.begin(key.group, request.topics, is_renewal=request.is_renew_ack)
    finish = finishing(acknowledging, session, request.share_session_epoch == FINAL_EPOCH, context)
    if acknowledging.is_done:
        return finish()
    deferred = Deferred()
    acknowledging.when_done(lambda: deferred.resolve(finish()))
    return deferred


def finishing(
    acknowledging: Acknowledging, session: ShareSession, is_final: bool, context: RequestContext
) -> Callable[[], ShareAcknowledgeResponse]:
    """The work that remains when the acknowledgements are stored."""
    broker, listener = context.broker, context.listener

    def finish() -> ShareAcknowledgeResponse:
        if is_final:
            broker.shares.release_session(session)
        topics: dict[bytes, Topic] = {}
        leaders: set[int] = set()
        for where, error in acknowledging.results.items():
            data = PartitionData(partition_index=where.partition)
            if error is not None:
                data.error_code, data.error_message = error.code, message_of(error)
                if error.code in NAMES_LEADER:
                    known = broker.image.topics.by_id.get(where.topic_id)
                    found = known.partitions.get(where.partition) if known is not None else None
                    if found is not None:
                        leaders.add(found.leader)
                        data.current_leader = PartitionData.LeaderIdAndEpoch(
                            leader_id=found.leader, leader_epoch=found.leader_epoch
                        )
            topic = topics.get(where.topic_id)
            if topic is None:
                topic = topics[where.topic_id] = Topic(topic_id=where.topic_id, partitions=[])
            topic.partitions.append(data)
        settings = broker.shares.settings_of(session.key.group)
        return ShareAcknowledgeResponse(
            acquisition_lock_timeout_ms=settings.limits.lock_duration_ms,
            responses=list(topics.values()),
            node_endpoints=[
                ShareAcknowledgeResponse.NodeEndpoint(
                    node_id=node.id, host=node.host, port=node.port, rack=node.rack
                )
                for node in broker.nodes(listener)
                if node.id in leaders
            ],
        )

    return finish
