"""IncrementalAlterConfigs and AlterConfigs: change and validate the configs of topics, brokers and groups.

In: the request, the image, the node's settings. Out: one ConfigRecord for each changed value, and a result
for each resource, which changes as a whole or not at all. `validate_only` decides the same and writes
nothing.
Does not know: authorization; loggers, which belong to each broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeVar

from barnabas.controller.context import Context
from barnabas.controller.decision import Decision, InSteps
from barnabas.controller.topic_names import reason_invalid
from barnabas.metadata.configs import CLUSTER_DEFAULT, ConfigResource, ConfigsImage, ResourceType
from barnabas.metadata.steps import Steps
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.log_records.metadata import ConfigRecord
from barnabas.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from barnabas.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.settings.broker_rules import validate_broker_overrides
from barnabas.settings.definitions import BROKER_ROWS, GROUP_ROWS, TOPIC_ROWS
from barnabas.settings.group_rules import validate_group_overrides
from barnabas.settings.secrets import Secrets, is_secret
from barnabas.settings.tables.row import Row
from barnabas.settings.topic_rules import validate_topic_overrides

IncrementalResource = IncrementalAlterConfigsRequest.AlterConfigsResource
LegacyResource = AlterConfigsRequest.AlterConfigsResource
Resource = TypeVar("Resource", IncrementalResource, LegacyResource)
Changes = dict[str, str | None]  # None: removed
ROWS: Mapping[int, Mapping[str, Row]] = {
    ResourceType.TOPIC: TOPIC_ROWS,
    ResourceType.BROKER: BROKER_ROWS,
    ResourceType.GROUP: GROUP_ROWS,
    ResourceType.CLIENT_METRICS: {},  # Kafka allows no APPEND or SUBTRACT for them
}
MIN_INSYNC_REPLICAS = "min.insync.replicas"


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Outcome(NamedTuple):
    code: int
    message: str | None


@InSteps
def incremental_alter_configs(
    context: Context, request: IncrementalAlterConfigsRequest
) -> Steps[Decision[IncrementalAlterConfigsResponse]]:
    """Change single values: set, delete, append to a list, subtract from it."""
    outcomes, records = yield from _decide(context, request.resources, _incremental_changes)
    result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    responses = [
        result(
            error_code=outcome.code,
            error_message=outcome.message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for resource, outcome in zip(request.resources, outcomes, strict=True)
    ]
    reply = IncrementalAlterConfigsResponse(responses=responses)
    return Decision(reply, [] if request.validate_only else records)


@InSteps
def alter_configs(context: Context, request: AlterConfigsRequest) -> Steps[Decision[AlterConfigsResponse]]:
    """Replace all values of a resource. Values that the request does not name are removed."""
    outcomes, records = yield from _decide(context, request.resources, _legacy_changes)
    result = AlterConfigsResponse.AlterConfigsResourceResponse
    responses = [
        result(
            error_code=outcome.code,
            error_message=outcome.message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for resource, outcome in zip(request.resources, outcomes, strict=True)
    ]
    return Decision(AlterConfigsResponse(responses=responses), [] if request.validate_only else records)


def _decide(
    context: Context,
    resources: Sequence[Resource],
    changes_of: Callable[[Resource, Mapping[str, str]], Changes],
) -> Steps[tuple[list[Outcome], list[Message]]]:
    times_named: Counter[tuple[int, str]] = Counter()
    for found in resources:
        times_named[found.resource_type, found.resource_name] += 1
        yield
    outcomes: list[Outcome] = []
    records: list[Message] = []
    for found in resources:
        yield
        resource = ConfigResource(found.resource_type, found.resource_name)
        try:
            if times_named[resource] > 1:
                raise bad_request("Each resource must appear at most once.")
            check_request(found)
            _check_resource(context, resource)
            existing = _existing(context, resource)
            changes = changes_of(found, existing)
            _check_changes(context, resource, existing, changes)
        except KafkaError as error:
            outcomes.append(Outcome(error.code, error.message))
            continue
        records += _records(context, resource, existing, changes)
        outcomes.append(Outcome(ErrorCode.NONE, None))
    return outcomes, records


def check_request(resource: IncrementalResource | LegacyResource) -> None:
    names = [config.name for config in resource.configs]
    if len(set(names)) != len(names):
        raise bad_request("Error due to duplicate config keys")
    missing = [
        config.name
        for config in resource.configs
        if config.value is None and getattr(config, "config_operation", Operation.SET) != Operation.DELETE
    ]
    if missing:
        raise bad_request(f"Null value not supported for : {', '.join(missing)}")


def _check_resource(context: Context, resource: ConfigResource) -> None:
    if resource.type not in ROWS:
        raise bad_request(f"Unknown resource type {resource.type}")
    if resource.type == ResourceType.GROUP and not resource.name:
        raise bad_request("Default group resources are not allowed.")
    if resource.type == ResourceType.TOPIC:
        if not resource.name:
            raise bad_request("Default topic resources are not allowed.")
        reason = reason_invalid(resource.name)
        if reason is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    if resource.type == ResourceType.BROKER and resource.name:
        node_id = context.settings.node_id
        if not resource.name.removeprefix("-").isdecimal():
            raise bad_request(f"Node id must be an integer, but it is: {resource.name}")
        cluster = context.image.cluster
        known = {node_id, *cluster.brokers, *cluster.controllers}
        if int(resource.name) not in known:
            raise bad_request(f"Unexpected broker id, expected {node_id}, but received {resource.name}")


def _incremental_changes(resource: IncrementalResource, existing: Mapping[str, str]) -> Changes:
    changes: Changes = {}
    for config in resource.configs:
        if config.config_operation == Operation.SET:
            changes[config.name] = config.value
        elif config.config_operation == Operation.DELETE:
            changes[config.name] = None
        elif config.config_operation in (Operation.APPEND, Operation.SUBTRACT):
            operation = Operation(config.config_operation)
            entries = _list_entries(resource.resource_type, config.name, operation, existing)
            given = (config.value or "").split(",")
            changes[config.name] = ",".join(_combined(operation, entries, given))
        else:
            raise bad_request(f"Unknown operations type {config.config_operation}")
    return changes


def _list_entries(
    resource_type: int, name: str, operation: Operation, existing: Mapping[str, str]
) -> list[str]:
    """The current entries of a list; an unset list starts from the setting's default."""
    row = ROWS[resource_type].get(name)
    if row is None or row[1] != "list":
        if resource_type == ResourceType.BROKER and row is None:
            message = f"Unknown config name: {name}"
        elif resource_type == ResourceType.BROKER:
            message = f"Config value {operation.name.lower()} is not allowed for config key: {name}"
        else:
            message = f"Can't {operation.name} to key {name} because its type is not LIST."
        raise KafkaError(ErrorCode.INVALID_CONFIG, message)
    text = existing.get(name, row[2])
    return [entry for entry in str(text).split(",") if entry] if isinstance(text, str) else []


def _combined(operation: Operation, entries: list[str], given: list[str]) -> list[str]:
    if operation == Operation.APPEND:
        return list(dict.fromkeys([*entries, *given]))
    refused = set(given)
    return [entry for entry in entries if entry not in refused]


def _legacy_changes(resource: LegacyResource, existing: Mapping[str, str]) -> Changes:
    changes: Changes = {config.name: config.value for config in resource.configs}
    changes.update({name: None for name in existing if name not in changes})
    return changes


def _check_changes(
    context: Context, resource: ConfigResource, existing: Mapping[str, str], changes: Changes
) -> None:
    after = dict(existing)
    for name, value in changes.items():
        if value is None:
            after.pop(name, None)
        else:
            after[name] = value
    if resource.type == ResourceType.TOPIC:
        validate_topic_overrides(after, context.settings, existing)
        if resource.name not in context.image.topics.by_name:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name}' does not exist."
            )
    elif resource.type == ResourceType.CLIENT_METRICS:
        from barnabas.settings.client_metrics import validate_client_metrics  # rarely needed

        validate_client_metrics(resource.name, after)
    elif resource.type == ResourceType.GROUP:
        validate_group_overrides(after, context.settings)
    else:
        _check_broker(context, resource, after, changes)


def _check_broker(
    context: Context, resource: ConfigResource, after: Mapping[str, str], changes: Changes
) -> None:
    if resource == CLUSTER_DEFAULT:
        own = _existing(context, ConfigResource(ResourceType.BROKER, str(context.settings.node_id)))
        validate_broker_overrides(context.settings, after, own, per_broker=False)
    else:
        default = _existing(context, CLUSTER_DEFAULT)
        validate_broker_overrides(context.settings, default, after, per_broker=True)
    if MIN_INSYNC_REPLICAS not in changes or not context.image.features.elr_enabled:
        return
    # Eligible leader replicas need one value for the whole cluster (KIP-966).
    if resource != CLUSTER_DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        )
    if changes[MIN_INSYNC_REPLICAS] is None:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        )


def _existing(context: Context, resource: ConfigResource) -> Mapping[str, str]:
    values = context.image.configs.of(resource)
    return context.secrets.opened(resource.name, values) if context.secrets is not None else values


def _records(
    context: Context, resource: ConfigResource, existing: Mapping[str, str], changes: Changes
) -> list[Message]:
    """One record for each value that differs. For brokers one for each value, since that makes them reload
    (KAFKA-14136)."""

    def stored(name: str, value: str | None) -> str | None:
        if value is None or context.secrets is None or resource.type != ResourceType.BROKER:
            return value
        return context.secrets.seal(resource.name, name, value) if is_secret(name) else value

    return [
        ConfigRecord(
            resource_type=resource.type, resource_name=resource.name, name=name, value=stored(name, value)
        )
        for name, value in changes.items()
        if resource.type == ResourceType.BROKER or existing.get(name) != value
    ]


def resealed(image: ConfigsImage, secrets: Secrets) -> list[Message]:
    """Records that encrypt the brokers' passwords with the newest key, where an older key or none was
    used."""
    return [
        ConfigRecord(
            resource_type=resource.type,
            resource_name=resource.name,
            name=name,
            value=secrets.seal(resource.name, name, secrets.opened(resource.name, {name: text})[name]),
        )
        for resource, values in image.by_resource.items()
        if resource.type == ResourceType.BROKER
        for name, text in values.items()
        if is_secret(name) and secrets.is_stale(resource.name, name, text)
    ]


def bad_request(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
