"""Metadata: brokers, topics, partitions and their leaders, by name or by id.

Missing topics are created where allowed, beside the response: it says UNKNOWN_TOPIC_OR_PARTITION, as Apache
Kafka's does. Clients rely on that: a topic that was just deleted must not look like a new one.
"""

from __future__ import annotations

from barnabas.broker import authorized
from barnabas.broker.context import RequestContext
from barnabas.broker.needs import describe_topics
from barnabas.broker.routes import handles
from barnabas.metadata.partitions import PartitionRegistration
from barnabas.metadata.topics import TopicImage
from barnabas.protocol import NULL_UUID, ErrorCode
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse

Topic = MetadataResponse.MetadataResponseTopic
NO_CONTROLLER = -1
TOPIC_IDS_SINCE = 12  # earlier versions carry the field and must not use it


@handles(MetadataRequest, "0-13", needs=describe_topics("topics.name"))
def metadata(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    missing = names_to_create(request, context)
    throttle_ms = create(missing, context) if missing else 0
    response = answer(request, context)
    if throttle_ms:
        response.throttle_time_ms = throttle_ms
        context.channel.mute(throttle_ms)
    return response


def names_to_create(request: MetadataRequest, context: RequestContext) -> list[str]:
    broker = context.broker
    allowed = request.allow_auto_topic_creation or context.version < 4
    if not allowed or not request.topics or not broker.settings["auto.create.topics.enable"]:
        return []
    known = broker.image.topics.by_name
    return [
        topic.name
        for topic in request.topics
        if topic.name is not None and topic.topic_id == NULL_UUID and topic.name not in known
    ]


def create(names: list[str], context: RequestContext) -> int:
    """Have valid names created beside this request, and return how long the client's quota throttles it."""
    from barnabas.controller.topic_names import reason_invalid

    broker = context.broker
    wanted = broker.auto_creation.missing([name for name in names if reason_invalid(name) is None])
    if not wanted:
        return 0
    mutations = broker.quotas.mutating(context.user, context.client_id, strict=False)
    broker.auto_creation.begin(wanted)
    if mutations is None:
        return 0
    mutations.take(len(wanted) * broker.settings["num.partitions"])
    return mutations.wait_ms()


def answer(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    broker = context.broker
    image = broker.image
    wants_operations = request.include_topic_authorized_operations
    if context.version < TOPIC_IDS_SINCE and any(
        topic.topic_id != NULL_UUID or topic.name is None for topic in request.topics or ()
    ):
        return MetadataResponse(
            cluster_id=None,
            controller_id=NO_CONTROLLER,
            topics=[
                Topic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name or "", topic_id=topic.topic_id)
                for topic in request.topics or ()
            ],
        )
    topics: list[Topic] = []
    if request.topics is None or (context.version == 0 and not request.topics):
        topics = [known(topic, context, wants_operations) for topic in image.topics.by_name.values()]
    else:
        by_id = any(asked.topic_id != NULL_UUID for asked in request.topics)
        for asked in {(each.name, each.topic_id): each for each in request.topics}.values():
            found = (
                image.topics.by_id.get(asked.topic_id)
                if by_id
                else image.topics.by_name.get(asked.name or "")
            )
            if found is not None:
                topics.append(known(found, context, wants_operations))
            elif by_id:
                topics.append(
                    Topic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id)
                )
            else:
                topics.append(unknown(asked.name or ""))
    return MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(
                node_id=node.id, host=node.host, port=node.port, rack=node.rack
            )
            for node in broker.nodes(context.listener)
        ],
        cluster_id=broker.cluster_id,
        controller_id=broker.any_broker_id(),
        topics=topics,
        cluster_authorized_operations=authorized.ON_CLUSTER
        if request.include_cluster_authorized_operations
        else authorized.NOT_ASKED,
    )


def unknown(name: str) -> Topic:
    from barnabas.controller.topic_names import reason_invalid

    is_valid = reason_invalid(name) is None
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid else ErrorCode.INVALID_TOPIC_EXCEPTION
    return Topic(error_code=code, name=name)


def known(topic: TopicImage, context: RequestContext, wants_operations: bool) -> Topic:
    broker = context.broker
    return Topic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=broker.is_internal(topic.name),
        partitions=[partition(index, found, context) for index, found in topic.partitions.items()],
        topic_authorized_operations=authorized.ON_TOPIC if wants_operations else authorized.NOT_ASKED,
    )


def partition(
    index: int, found: PartitionRegistration, context: RequestContext
) -> Topic.MetadataResponsePartition:
    return Topic.MetadataResponsePartition(
        error_code=ErrorCode.NONE if found.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=found.leader,
        leader_epoch=found.leader_epoch,
        replica_nodes=list(found.replicas),
        isr_nodes=list(found.isr),
        offline_replicas=context.broker.offline_replicas(found),
    )
