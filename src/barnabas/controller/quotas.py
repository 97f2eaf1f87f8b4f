"""AlterClientQuotas and DescribeClientQuotas: change and find quotas of users, client ids and addresses.

In: the request and the image. Out: one ClientQuotaRecord for each changed value, and a result for each
entity, which changes as a whole or not at all; or the entities that a filter matches.
Does not know: whether a host name resolves (the broker checks before), how quotas are enforced.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.controller.context import Context
from barnabas.controller.decision import Decision, InSteps
from barnabas.metadata.quotas import QuotaEntity, QuotasImage
from barnabas.metadata.steps import Steps
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.log_records.metadata import ClientQuotaRecord
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from barnabas.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

USER, CLIENT_ID, IP = "user", "client-id", "ip"
# Quota names and types; quotas of addresses apply to connections only.
OF_CLIENTS = {
    "producer_byte_rate": "LONG",
    "consumer_byte_rate": "LONG",
    "request_percentage": "DOUBLE",
    "controller_mutation_rate": "DOUBLE",
}
OF_ADDRESSES = {"connection_creation_rate": "INT"}
LARGEST = {"LONG": (2**63 - 1, "a LONG"), "INT": (2**31 - 1, "an INT")}
FRACTION_MAX = 1e-6
EXACT, DEFAULT, SPECIFIED = 0, 1, 2

RequestedEntry = AlterClientQuotasRequest.EntryData
EntryResult = AlterClientQuotasResponse.EntryData
Found = DescribeClientQuotasResponse.EntryData
Entity = dict[str, str | None]


@InSteps
def alter_client_quotas(
    context: Context, request: AlterClientQuotasRequest
) -> Steps[Decision[AlterClientQuotasResponse]]:
    results: dict[QuotaEntity, EntryResult] = {}
    records: list[Message] = []
    for requested in request.entries:
        yield
        entity = {part.entity_type: part.entity_name for part in requested.entity}
        key = _key(entity)
        code, message = ErrorCode.NONE, None
        try:
            if key in results:
                raise bad_request(f"Ignoring duplicate entity {_text(entity)}")
            changed = _changes(entity, requested, context.image.quotas.by_entity.get(key, {}))
            records += changed
        except KafkaError as error:
            code, message = error.code, error.message
        parts = [EntryResult.EntityData(entity_type=kind, entity_name=name) for kind, name in key]
        results[key] = EntryResult(error_code=code, error_message=message, entity=parts)
    reply = AlterClientQuotasResponse(entries=list(results.values()))
    return Decision(reply, [] if request.validate_only else records)


def _changes(entity: Entity, requested: RequestedEntry, existing: Mapping[str, float]) -> list[Message]:
    wanted: dict[str, float | None] = {}
    for op in requested.ops:
        if op.key in wanted:
            raise bad_request(
                f"Duplicate quota key {op.key} not updating quota for this entity {_text(entity)}"
            )
        wanted[op.key] = None if op.remove else op.value
    allowed = _allowed_keys(entity)
    records: list[Message] = []
    for name, value in wanted.items():
        if value is not None:
            check_value(allowed, name, value)
        if value == existing.get(name):
            continue
        records.append(
            ClientQuotaRecord(
                entity=[
                    ClientQuotaRecord.EntityData(entity_type=kind, entity_name=part)
                    for kind, part in entity.items()
                ],
                key=name,
                value=value or 0.0,
                remove=value is None,
            )
        )
    return records


def _allowed_keys(entity: Entity) -> Mapping[str, str]:
    if not entity:
        raise bad_request("Invalid empty client quota entity")
    for kind, name in entity.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise bad_request(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise bad_request(f"Empty {kind} not supported")
    if IP not in entity:
        return OF_CLIENTS
    if len(entity) > 1:
        raise bad_request(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        )
    return OF_ADDRESSES


def check_value(allowed: Mapping[str, str], name: str, value: float) -> None:
    kind = allowed.get(name)
    if kind is None:
        raise bad_request(f"Invalid configuration key {name}")
    if value <= 0:
        raise bad_request(f"Quota {name} must be greater than 0")
    if kind in LARGEST:
        largest, words = LARGEST[kind]
        if value > float(largest):
            raise bad_request(f"Proposed value for {name} is too large for {words}.")
        if value == value and value % 1.0 > FRACTION_MAX:
            raise bad_request(f"{name} cannot be a fractional value.")


def describe_client_quotas(
    image: QuotasImage, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """The entities that match. `strict` excludes those with parts that the filter does not name."""
    exact: Entity = {}
    any_name: list[str] = []
    for component in request.components:
        kind, match = component.entity_type, component.match
        if not kind:
            raise bad_request("Invalid empty entity type.")
        if kind in exact or kind in any_name:
            raise bad_request(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in (USER, CLIENT_ID, IP):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        _check_match(component.match_type, match)
        if component.match_type == SPECIFIED:
            any_name.append(kind)
        else:
            exact[kind] = match
    named = {*exact, *any_name}
    if IP in named and len(named) > 1:
        raise bad_request(
            "Invalid entity filter component combination. IP filter component should not be used with user "
            "or clientId filter component."
        )
    found = []
    for entity, values in image.by_entity.items():
        parts = dict(entity)
        if request.strict and len(parts) != len(named):
            continue
        if named <= parts.keys() and all(parts[kind] == name for kind, name in exact.items()):
            found.append(_described(entity, values))
    return DescribeClientQuotasResponse(entries=found)


def _check_match(match_type: int, match: str | None) -> None:
    if match_type == EXACT:
        if match is None:
            raise bad_request("Request specified MATCH_TYPE_EXACT, but set match string to null.")
    elif match_type in (DEFAULT, SPECIFIED):
        if match is not None:
            name = "DEFAULT" if match_type == DEFAULT else "SPECIFIED"
            raise bad_request(f"Request specified MATCH_TYPE_{name}, but also specified a match string.")
    else:
        raise bad_request(f"Unknown match type {match_type}")


def _described(entity: QuotaEntity, values: Mapping[str, float]) -> Found:
    return Found(
        entity=[Found.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        values=[Found.ValueData(key=key, value=value) for key, value in values.items()],
    )


def _key(entity: Entity) -> QuotaEntity:
    return tuple(sorted(entity.items(), key=lambda part: part[0]))


def _text(entity: Entity) -> str:
    parts = ", ".join(f"{kind}={name if name is not None else '<default>'}" for kind, name in entity.items())
    return f"ClientQuotaEntity(entries={{{parts}}})"


def bad_request(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
