"""Validates a ShareGroupHeartbeat before its group is looked up.

In: a request. Out: nothing, or KafkaError with Apache Kafka's messages.
Does not know: groups, members.
"""

from __future__ import annotations

from barnabas.groups.basics.request_checks import not_empty, refuse
from barnabas.groups.share.member import JOINING_EPOCH, LEAVING_EPOCH
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


def check(request: ShareGroupHeartbeatRequest) -> None:
    not_empty(request.member_id, "MemberId")
    not_empty(request.group_id, "GroupId")
    not_empty(request.rack_id, "RackId")
    if request.member_epoch == JOINING_EPOCH:
        if not request.subscribed_topic_names:
            refuse("SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVING_EPOCH:
        refuse("MemberEpoch is invalid.")
