"""Registration of nodes: a broker gets its epoch, a controller registers its listeners; brokers can be
unregistered.

In: BrokerRegistration, ControllerRegistration, UnregisterBroker. Out: the registration record; after an
unclean shutdown also the partitions that lose the broker. A broker's epoch is the offset at which the
decision begins, so it always grows.
Does not know: heartbeats (`heartbeat`), which listeners are reachable.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.controller import leadership
from barnabas.controller.context import Context
from barnabas.controller.decision import Decision, InSteps, collect
from barnabas.metadata.cluster import BrokerRegistration, Endpoint, FeatureRange
from barnabas.metadata.partitions import is_reserved_directory
from barnabas.metadata.steps import Steps
from barnabas.metadata.versions import (
    CONTROLLER_REGISTRATION,
    DIRECTORY_ASSIGNMENT,
    METADATA_VERSION,
    MINIMUM_LEVEL,
)
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.log_records.metadata import RegisterControllerRecord, UnregisterBrokerRecord
from barnabas.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from barnabas.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from barnabas.protocol.uuid import to_text


@InSteps
def register_broker(
    context: Context, request: BrokerRegistrationRequest
) -> Steps[Decision[BrokerRegistrationResponse]]:
    existing = context.image.cluster.brokers.get(request.broker_id)
    _check_identity(context, request, existing)
    _check_directories(context, request)
    features = {
        each.name: FeatureRange(each.min_supported_version, each.max_supported_version)
        for each in request.features
    }
    # A broker that names no metadata.version counts as the oldest.
    features.setdefault(METADATA_VERSION, FeatureRange(MINIMUM_LEVEL, MINIMUM_LEVEL))
    _check_features(context, features)
    same = existing is not None and existing.incarnation_id == request.incarnation_id
    registration = BrokerRegistration(
        id=request.broker_id,
        epoch=existing.epoch if same and existing else context.next_offset,
        incarnation_id=request.incarnation_id,
        listeners={
            each.name: Endpoint(each.name, each.host, each.port, each.security_protocol)
            for each in request.listeners
        },
        features=features,
        rack=request.rack,
        fenced=existing.fenced if same and existing else True,
        in_controlled_shutdown=existing.in_controlled_shutdown if same and existing else False,
        log_dirs=tuple(request.log_dirs) if context.level >= DIRECTORY_ASSIGNMENT else (),
        cordoned_log_dirs=existing.cordoned_log_dirs if same and existing else None,
    )
    records: list[Message] = []
    if existing is not None and not same:
        yield from collect(_end_of(context, existing, request.previous_broker_epoch), records)
    records.append(registration.to_record(context.level))
    return Decision(BrokerRegistrationResponse(broker_epoch=registration.epoch), records)


def _end_of(context: Context, existing: BrokerRegistration, previous_epoch: int) -> Iterator[Message | None]:
    """The records for the end of the previous incarnation. After a clean shutdown the broker names its
    previous epoch."""
    if previous_epoch == existing.epoch:
        yield from leadership.without_broker(context, existing.id)
    else:
        yield from leadership.after_unclean_shutdown(context, existing.id)


def _check_identity(
    context: Context, request: BrokerRegistrationRequest, existing: BrokerRegistration | None
) -> None:
    if request.cluster_id != context.cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {context.cluster_id}, but got cluster ID {request.cluster_id}",
        )
    if (
        existing is not None
        and not existing.fenced
        and context.sessions.is_alive(request.broker_id, context.now_ms)
        and existing.incarnation_id != request.incarnation_id
    ):
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION, "Another broker is registered with that broker id."
        )
    if request.is_migrating_zk_broker:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, "Controller does not support registering ZK brokers."
        )


def _check_directories(context: Context, request: BrokerRegistrationRequest) -> None:
    if context.level < DIRECTORY_ASSIGNMENT:
        return
    if not request.log_dirs:
        raise _invalid("No directories specified in request")
    if any(is_reserved_directory(directory) for directory in request.log_dirs):
        raise _invalid("Reserved directory ID in request")
    if len(set(request.log_dirs)) != len(request.log_dirs):
        raise _invalid("Duplicate directory ID in request")
    for broker in context.image.cluster.brokers.values():
        for directory in request.log_dirs:
            if broker.id != request.broker_id and directory in broker.log_dirs:
                raise _invalid(
                    f"Broker {broker.id} is already registered with directory {to_text(directory)}"
                )


def _check_features(context: Context, features: dict[str, FeatureRange]) -> None:
    """Raise KafkaError unless the broker supports every finalized level."""
    for name in {**features, **context.image.features.finalized}:
        finalized = context.level if name == METADATA_VERSION else context.image.features.level(name)
        lowest, highest = features.get(name, FeatureRange(0, 0))
        if not lowest <= finalized <= highest:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version {finalized} of "
                f"{name}. The broker wants a version between {lowest} and {highest}, inclusive.",
            )


def register_controller(
    context: Context, request: ControllerRegistrationRequest
) -> Decision[ControllerRegistrationResponse]:
    if context.level < CONTROLLER_REGISTRATION:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller registrations.",
        )
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=False,
        end_points=[
            RegisterControllerRecord.ControllerEndpoint(
                name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
            )
            for each in request.listeners
        ],
        features=[
            RegisterControllerRecord.ControllerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in request.features
        ],
    )
    return Decision(ControllerRegistrationResponse(error_message=None), [record])


@InSteps
def unregister_broker(
    context: Context, request: UnregisterBrokerRequest
) -> Steps[Decision[UnregisterBrokerResponse]]:
    broker = context.image.cluster.brokers.get(request.broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {request.broker_id} is not currently registered"
        )
    records: list[Message] = []
    yield from collect(leadership.without_broker(context, broker.id), records)
    records.append(UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch))
    return Decision(UnregisterBrokerResponse(), records)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REGISTRATION, message)
