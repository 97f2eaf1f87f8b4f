"""CreateTopics: validates names, counts, assignments and configs, and creates the topics.

In: the request, the image. Out: per topic one TopicRecord, then its ConfigRecords, then its PartitionRecords;
and a result or an error with Kafka's message. `validate_only` decides the same and writes nothing.
Does not know: authorization (the caller removes topics that the principal may not create), policies, quotas.
"""

from __future__ import annotations

from collections import Counter

from barnabas.controller.context import RECORDS_PER_DECISION_MAX, Context
from barnabas.controller.decision import Decision, InSteps
from barnabas.controller.placement import UsableBroker, placement
from barnabas.controller.topic_names import (
    CLUSTER_METADATA_TOPIC,
    can_collide,
    collision_form,
    reason_invalid,
)
from barnabas.metadata.cluster import BrokerRegistration
from barnabas.metadata.configs import ResourceType
from barnabas.metadata.partitions import PartitionRegistration
from barnabas.metadata.steps import Steps
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.log_records.metadata import ConfigRecord, TopicRecord
from barnabas.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.settings.describe import describe_topic
from barnabas.settings.topic_rules import validate_topic_overrides

Topic = CreateTopicsRequest.CreatableTopic
Result = CreateTopicsResponse.CreatableTopicResult
Config = Result.CreatableTopicConfigs
Partitions = dict[int, PartitionRegistration]

PARTITIONS_PER_STEP = 16
DEFAULT = -1  # as a count or a replication factor: use the cluster's default


@InSteps
def create_topics(context: Context, request: CreateTopicsRequest) -> Steps[Decision[CreateTopicsResponse]]:
    """Decide a request. Results keep the request's order, except duplicate and forbidden topics, which
    come last."""
    times_named = Counter(topic.name for topic in request.topics)
    wanted = [
        topic
        for topic in request.topics
        if times_named[topic.name] == 1 and topic.name != CLUSTER_METADATA_TOPIC
    ]
    _check_size(context, wanted)
    collisions = (
        {collision_form(name): name for name in context.image.topics.by_name if can_collide(name)}
        if any(can_collide(topic.name) for topic in wanted)
        else {}
    )
    records: list[Message] = []
    results: list[Result] = []
    for topic in wanted:
        try:
            _check_name(context, topic.name, collisions)
            topic_records, result = yield from _create(context, topic)
        except KafkaError as error:
            results.append(_error(topic.name, error))
            continue
        if len(records) + len(topic_records) > RECORDS_PER_DECISION_MAX:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
            )
        records.extend(topic_records)
        results.append(result)
    results.extend(_refusals(times_named))
    reply = CreateTopicsResponse(topics=results)
    return Decision(reply, [] if request.validate_only else records)


def _refusals(times_named: Counter[str]) -> list[Result]:
    refused = []
    for name, times in times_named.items():
        if times > 1:
            refused.append(_error(name, KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")))
        elif name == CLUSTER_METADATA_TOPIC:
            message = f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited."
            refused.append(_error(name, KafkaError(ErrorCode.INVALID_REQUEST, message)))
    return refused


def _check_size(context: Context, topics: list[Topic]) -> None:
    """Refuse what could never fit into one batch, before any list of that length is built."""
    total = 0
    for topic in topics:
        count = len(topic.assignments) or topic.num_partitions
        total += max(int(context.settings["num.partitions"]) if count == DEFAULT else count, 0)
    if total > RECORDS_PER_DECISION_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _check_name(context: Context, name: str, collisions: dict[str, str]) -> None:
    reason = reason_invalid(name)
    if reason is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    if name in context.image.topics.by_name:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    existing = collisions.get(collision_form(name)) if can_collide(name) else None
    if existing is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {existing}"
        )


def _create(context: Context, topic: Topic) -> Steps[tuple[list[Message], Result]]:
    overrides = {config.name: config.value for config in topic.configs}
    validate_topic_overrides(overrides, context.settings)
    yield
    partitions = yield from (_assigned if topic.assignments else _placed)(context, topic)
    context.charge_mutations(len(partitions))
    topic_id = context.new_uuid()
    records: list[Message] = [TopicRecord(name=topic.name, topic_id=topic_id)]
    for name, value in overrides.items():
        records.append(
            ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=topic.name, name=name, value=value)
        )
    level = context.level
    for number, partition in partitions.items():
        records.append(partition.to_record(topic_id, number, level))
        if not number % PARTITIONS_PER_STEP:
            yield
    result = Result(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
        configs=_effective_configs(context, overrides),
    )
    return records, result


def _effective_configs(context: Context, overrides: dict[str, str | None]) -> list[Config]:
    """All configs of the new topic, its own and inherited ones, by name."""
    own = {name: value for name, value in overrides.items() if value is not None}
    entries = describe_topic(own, context.settings)
    return [
        Config(
            name=entry.name,
            value=own.get(entry.name, entry.value),  # as it was given, not as it was parsed
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in sorted(entries, key=lambda entry: entry.name)
    ]


def _placed(context: Context, topic: Topic) -> Steps[Partitions]:
    if topic.replication_factor < DEFAULT or topic.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < DEFAULT or topic.num_partitions == 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    settings = context.settings
    count = settings["num.partitions"] if topic.num_partitions == DEFAULT else topic.num_partitions
    factor = topic.replication_factor
    if factor == DEFAULT:
        factor = settings["default.replication.factor"]
    try:
        placing = placement(factor, usable_brokers(context), context.rng)
    except KafkaError as error:
        raise KafkaError(error.code, _cannot_replicate(factor, error.message)) from None
    partitions: Partitions = {}
    for number, replicas in zip(range(count), placing, strict=False):
        if not number % PARTITIONS_PER_STEP:
            yield
        partition = context.new_partition(replicas)
        if partition is None:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                _cannot_replicate(factor, "All brokers are currently fenced or in controlled shutdown."),
            )
        partitions[number] = partition
    return partitions


def _cannot_replicate(factor: int, reason: str) -> str:
    return f"Unable to replicate the partition {factor} time(s): {reason}"


def _assigned(context: Context, topic: Topic) -> Steps[Partitions]:
    if topic.replication_factor != DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        )
    if topic.num_partitions != DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    partitions: Partitions = {}
    factor: int | None = None
    for assignment in topic.assignments:
        number = assignment.partition_index
        if number in partitions:
            raise bad_assignment(f"Found multiple manual partition assignments for partition {number}")
        if not len(partitions) % PARTITIONS_PER_STEP:
            yield
        partitions[number] = assigned_partition(context, number, tuple(assignment.broker_ids), factor)
        factor = len(assignment.broker_ids)
    if sorted(partitions) != list(range(len(partitions))):
        raise bad_assignment("partitions should be a consecutive 0-based integer sequence")
    return {number: partitions[number] for number in sorted(partitions)}


def assigned_partition(
    context: Context, number: int, replicas: tuple[int, ...], factor: int | None
) -> PartitionRegistration:
    """A new partition on brokers that the request chose. CreatePartitions uses it too."""
    check_assignment(context, replicas, factor)
    partition = context.new_partition(replicas)
    if partition is None:
        raise bad_assignment(
            f"All brokers specified in the manual partition assignment for partition {number} are fenced "
            "or in controlled shutdown."
        )
    return partition


def check_assignment(context: Context, replicas: tuple[int, ...], factor: int | None) -> None:
    """Validate the brokers that a request chose for a partition; `factor` is the replication factor of the
    topic's other partitions."""
    if not replicas:
        raise bad_assignment("The manual partition assignment includes an empty replica list.")
    previous: int | None = None
    for broker in sorted(replicas):
        if broker not in context.image.cluster.brokers:
            raise bad_assignment(
                f"The manual partition assignment includes broker {broker}, but no such broker is registered."
            )
        if broker == previous:
            raise bad_assignment(
                f"The manual partition assignment includes the broker {broker} more than once."
            )
        previous = broker
    if factor is not None and len(replicas) != factor:
        raise bad_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but "
            f"this is not consistent with previous partitions, which have {factor} replica(s)."
        )


def usable_brokers(context: Context) -> list[UsableBroker]:
    """The brokers that may get new replicas: all that are registered, not shutting down and not cordoned."""
    return [
        UsableBroker(broker.id, broker.rack, broker.fenced)
        for broker in context.image.cluster.brokers.values()
        if not broker.in_controlled_shutdown and not _is_cordoned(broker)
    ]


def _is_cordoned(broker: BrokerRegistration) -> bool:
    """Whether all of a broker's directories are closed to new replicas (KIP-1066)."""
    return bool(broker.cordoned_log_dirs) and set(broker.log_dirs) <= set(broker.cordoned_log_dirs or ())


def bad_assignment(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def _error(name: str, error: KafkaError) -> Result:
    return Result(name=name, error_code=error.code, error_message=error.message)
