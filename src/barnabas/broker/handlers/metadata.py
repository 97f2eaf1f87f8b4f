"""Metadata: brokers, topics, partitions and their leaders, by name or by id.

Missing topics are created where allowed, in the background: this response says UNKNOWN_TOPIC_OR_PARTITION, as
Apache Kafka's does. Clients rely on that: a topic that was just deleted must not look like a new one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence, Set
from typing import TYPE_CHECKING

from barnabas.broker.api import authorized
from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import CLUSTER, TOPIC, Instead, Need, Where, describe_shown_topics
from barnabas.broker.api.routes import handles
from barnabas.broker.topics.encoded_topics import Form, PackedTopics, encoder
from barnabas.metadata.steps import Steps, at_once
from barnabas.metadata.topics import TopicImage
from barnabas.protocol import NULL_UUID, ApiKey, ErrorCode
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.security.acls.vocabulary import CLUSTER_NAME, Operation

if TYPE_CHECKING:
    from barnabas.broker.access.rights import Rights
    from barnabas.broker.broker import Broker

Topic = MetadataResponse.MetadataResponseTopic
NO_CONTROLLER = -1
TOPIC_IDS_SINCE = 12  # earlier versions carry the field and must not use it
TOPICS_A_STEP = 64
TOPICS_AT_ONCE_MAX, PARTITIONS_AT_ONCE_MAX = 500, 100  # more are packed in pieces


NEEDS = (
    Need(Operation.DESCRIBE, TOPIC, "topics.name", Where.ITEM, "topics").asked_by_handler(),
    describe_shown_topics,  # where all topics are requested
    Need(Operation.CREATE, TOPIC, "topics.name", Where.ITEM, "topics")
    .or_(Instead.CLUSTER_CREATE)
    .asked_by_handler(),
)
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@handles(MetadataRequest, "0-13", needs=NEEDS, encoder=encoder, counts_errors=False)
def metadata(
    request: MetadataRequest, context: RequestContext
) -> MetadataResponse | Awaitable[MetadataResponse]:
    if request.topics is not None and len(request.topics) > TOPICS_AT_ONCE_MAX:
        return many_topics(request, context)
    missing = at_once(names_to_create(request, context))
    refused: Set[str] = frozenset()
    if missing and context.rights is not None:
        missing, refused = at_once(those_allowed(missing, context, context.rights))
    throttle_ms = create(missing, context) if missing else 0
    response = build_response(request, context)
    if throttle_ms:
        response.throttle_time_ms = throttle_ms
        context.channel.mute(throttle_ms)
    if request.topics is None or (context.version == 0 and not request.topics):
        topics = all_topics(request, context)
    else:
        topics = named(at_once(named_topics(request, context, refused)), request, context)
    if isinstance(topics, PackedTopics):
        response.topics = topics
        return response
    return with_topics(response, topics)


async def many_topics(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    """The response to a request that names many topics, in pieces."""
    pieces = context.broker.pieces
    missing = await pieces.run(names_to_create(request, context))
    refused: Set[str] = frozenset()
    if missing and context.rights is not None:
        missing, refused = await pieces.run(those_allowed(missing, context, context.rights))
    throttle_ms = create(missing, context) if missing else 0
    response = build_response(request, context)
    topics = await pieces.run(named_topics(request, context, refused))
    if throttle_ms:
        response.throttle_time_ms = throttle_ms
        context.channel.mute(throttle_ms)
    packed = named(topics, request, context)
    response.topics = packed if isinstance(packed, PackedTopics) else await packed
    return response


async def with_topics(response: MetadataResponse, packing: Awaitable[PackedTopics]) -> MetadataResponse:
    response.topics = await packing
    return response


def names_to_create(request: MetadataRequest, context: RequestContext) -> Steps[list[str]]:
    """The valid names of missing topics that the request may create, up to a limit."""
    broker = context.broker
    allowed = request.allow_auto_topic_creation or context.version < 4
    if not allowed or not request.topics or not broker.settings["auto.create.topics.enable"]:
        return []
    known = broker.image.topics.by_name
    names = []
    for topic in request.topics:
        if topic.name is not None and topic.topic_id == NULL_UUID and topic.name not in known:
            names.append(topic.name)
        yield
    return names


def those_allowed(
    names: list[str], context: RequestContext, rights: Rights
) -> Steps[tuple[list[str], Set[str]]]:
    """The missing topics that the caller may see and create, and those that it may see only."""
    seen = []
    for name in names:
        if rights.allow_quietly(Operation.DESCRIBE, TOPIC, name):
            seen.append(name)
        yield
    if not seen or rights.allow_quietly(Operation.CREATE, CLUSTER, CLUSTER_NAME):
        return seen, frozenset()
    allowed, refused = [], set()
    for name in seen:
        if rights.allow(Operation.CREATE, TOPIC, name, context.api):
            allowed.append(name)
        else:
            refused.add(name)
        yield
    return allowed, refused


def create(names: list[str], context: RequestContext) -> int:
    """Start to create topics with valid names. Out: how long the client's quota throttles it, in ms."""
    broker = context.broker
    wanted = broker.auto_creation.missing(names)
    if not wanted:
        return 0
    mutations = broker.quotas.mutating(context.user, context.client_id, strict=False)
    broker.auto_creation.begin(wanted, context)
    if mutations is None:
        return 0
    mutations.spend(len(wanted) * broker.settings["num.partitions"])
    return mutations.wait_ms()


def all_topics(request: MetadataRequest, context: RequestContext) -> PackedTopics | Awaitable[PackedTopics]:
    """All topics, in the background if many of them must be encoded."""
    broker, rights = context.broker, context.rights
    image, cache = broker.image, broker.encoded_topics
    form = Form(context.version, request.include_topic_authorized_operations)
    if rights is not None:
        return broker.pieces.run(visible_topics(rights, form, broker))
    packed = cache.all_packed(form, image)
    if packed is not None:
        return packed
    everything = image.topics.by_name.values()
    is_small = len(everything) <= TOPICS_AT_ONCE_MAX
    if is_small and cache.missing(everything, form, image) <= PARTITIONS_AT_ONCE_MAX:
        return at_once(cache.pack_all(form, image))
    return broker.pieces.run(cache.pack_all(form, image))


def named(
    topics: Sequence[TopicImage | Topic], request: MetadataRequest, context: RequestContext
) -> PackedTopics | Awaitable[PackedTopics]:
    """The topics that a request names, in the background if many of them must be encoded."""
    broker, rights = context.broker, context.rights
    image, cache = broker.image, broker.encoded_topics
    form = Form(context.version, request.include_topic_authorized_operations)
    is_small = len(topics) <= TOPICS_AT_ONCE_MAX
    if is_small and cache.missing(images_in(topics), form, image) <= PARTITIONS_AT_ONCE_MAX:
        return at_once(cache.pack(topics, form, image, rights))
    return broker.pieces.run(cache.pack(topics, form, image, rights))


def visible_topics(rights: Rights, form: Form, broker: Broker) -> Steps[PackedTopics]:
    """All topics that the caller may describe."""
    visible = []
    image = broker.image
    for count, topic in enumerate(list(image.topics.by_name.values()), 1):
        if rights.allow_quietly(Operation.DESCRIBE, TOPIC, topic.name):
            visible.append(topic)
        if not count % TOPICS_A_STEP:
            yield
    return (yield from broker.encoded_topics.pack(visible, form, image, rights))


def images_in(topics: Sequence[TopicImage | Topic]) -> list[TopicImage]:
    return [topic for topic in topics if isinstance(topic, TopicImage)]


def named_topics(
    request: MetadataRequest, context: RequestContext, refused: Set[str]
) -> Steps[Sequence[TopicImage | Topic]]:
    """The topics that the request names, each once; unknown topics as errors. `refused` are missing topics
    that the caller may not create."""
    image = context.broker.image
    asked_for = request.topics or ()
    counts = context.broker.metrics.api(ApiKey.METADATA, context.version)
    if uses_ids_too_early(request, context.version):
        counts.count_error(ErrorCode.INVALID_REQUEST, len(asked_for))
        return [
            Topic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name or "", topic_id=topic.topic_id)
            for topic in asked_for
        ]
    topics: list[TopicImage | Topic] = []
    checks = context.rights is not None
    by_id = any(asked.topic_id != NULL_UUID for asked in asked_for)
    once = {}
    for each in asked_for:
        once[each.name, each.topic_id] = each
        yield
    for asked in once.values():
        yield
        found = (
            image.topics.by_id.get(asked.topic_id) if by_id else image.topics.by_name.get(asked.name or "")
        )
        if by_id and found is None:
            topics.append(Topic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id))
        elif checks and not context.may(Operation.DESCRIBE, TOPIC, found.name if found else asked.name or ""):
            name = None if by_id else asked.name or ""
            topics.append(Topic(error_code=REFUSED, name=name, topic_id=asked.topic_id))
        elif found is not None:
            topics.append(found)
        elif asked.name in refused:
            topics.append(Topic(error_code=REFUSED, name=asked.name))
        else:
            topics.append(unknown(asked.name or ""))
        latest = topics[-1]
        if isinstance(latest, Topic):
            counts.count_error(latest.error_code)
    return topics


def uses_ids_too_early(request: MetadataRequest, version: int) -> bool:
    """Whether the request uses ids in a version that has the field and must not use it."""
    return version < TOPIC_IDS_SINCE and any(
        topic.topic_id != NULL_UUID or topic.name is None for topic in request.topics or ()
    )


def build_response(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    """Build the response without its topics."""
    broker = context.broker
    if uses_ids_too_early(request, context.version):
        return MetadataResponse(cluster_id=None, controller_id=NO_CONTROLLER)
    return MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(
                node_id=node.id, host=node.host, port=node.port, rack=node.rack
            )
            for node in broker.nodes(context.listener)
        ],
        cluster_id=broker.cluster_id,
        controller_id=broker.any_broker_id(),
        cluster_authorized_operations=authorized.on_cluster(context)
        if request.include_cluster_authorized_operations
        else authorized.NOT_ASKED,
    )


def unknown(name: str) -> Topic:
    from barnabas.controller.topic_names import reason_invalid

    is_valid = reason_invalid(name) is None
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid else ErrorCode.INVALID_TOPIC_EXCEPTION
    return Topic(error_code=code, name=name)
