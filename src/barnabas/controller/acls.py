"""CreateAcls and DeleteAcls: records of access control entries; DescribeAcls reads them.

In: the request and the image. Out: one record for each new or removed entry, and a result for each creation
or filter, with Kafka's messages. An entry that exists is created again without a record. One invalid entry
fails alone, except an entry that is a filter in truth (ANY, MATCH): it fails the whole request, as in Kafka.
Does not know: who may change ACLs, how they decide.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.controller.context import RECORDS_PER_DECISION_MAX, Context
from barnabas.controller.decision import Decision, InSteps
from barnabas.metadata.security import AccessControlEntry, SecurityImage
from barnabas.metadata.steps import Steps
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.log_records.metadata import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from barnabas.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from barnabas.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from barnabas.security.acls.filters import AclFilter
from barnabas.security.acls.vocabulary import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType

Created = CreateAclsResponse.AclCreationResult
Deleted = DeleteAclsResponse.DeleteAclsFilterResult
Matching = Deleted.DeleteAclsMatchingAcl
Resource = DescribeAclsResponse.DescribeAclsResource
ENTRIES_A_STEP = 64
FILTER = "An ACL cannot have ANY or MATCH in its fields: they belong into filters."
TOO_MANY = "Unable to perform excessively large batch operation."
TOO_MANY_DELETED = f"Cannot remove more than {RECORDS_PER_DECISION_MAX} acls in a single delete operation."


@InSteps
def create_acls(context: Context, request: CreateAclsRequest) -> Steps[Decision[CreateAclsResponse]]:
    if any(is_filter(creation) for creation in request.creations):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, FILTER)
    known: set[AccessControlEntry] = set()
    for count, existing in enumerate(context.image.security.acls.values()):
        known.add(existing)
        if not count % ENTRIES_A_STEP:
            yield
    results: list[Created] = []
    records: list[Message] = []
    for count, creation in enumerate(request.creations):
        if not count % ENTRIES_A_STEP:
            yield
        entry = entry_of(creation)
        problem = reason_invalid(entry)
        if problem is not None:
            results.append(Created(error_code=ErrorCode.INVALID_REQUEST, error_message=problem))
            continue
        results.append(Created())
        if entry not in known:
            known.add(entry)
            records.append(record_of(context.new_uuid(), entry))
        if len(records) > RECORDS_PER_DECISION_MAX:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, TOO_MANY)
    return Decision(CreateAclsResponse(results=results), records)


@InSteps
def delete_acls(context: Context, request: DeleteAclsRequest) -> Steps[Decision[DeleteAclsResponse]]:
    removed: dict[bytes, None] = {}
    results: list[Deleted] = []
    acls = context.image.security.acls
    for asked in request.filters:
        yield
        wanted = filter_of(asked)
        matching: list[Matching] = []
        for count, (acl_id, entry) in enumerate(acls.items()):
            if wanted.matches(*entry):
                matching.append(matching_of(entry))
                removed[acl_id] = None
                if len(removed) > RECORDS_PER_DECISION_MAX:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, TOO_MANY_DELETED)
            if not count % ENTRIES_A_STEP:
                yield
        results.append(Deleted(error_message=None, matching_acls=matching))
    records: list[Message] = [RemoveAccessControlEntryRecord(id=acl_id) for acl_id in removed]
    return Decision(DeleteAclsResponse(filter_results=results), records)


def describe_acls(image: SecurityImage, request: DescribeAclsRequest) -> Steps[DescribeAclsResponse]:
    """The ACLs that match the request's filter, by resource."""
    wanted = filter_of(request)
    resources: dict[tuple[int, str, int], Resource] = {}
    for count, entry in enumerate(image.acls.values()):
        if wanted.matches(*entry):
            key = (entry.resource_type, entry.resource_name, entry.pattern_type)
            resource = resources.get(key)
            if resource is None:
                resource = resources[key] = Resource(
                    resource_type=key[0], resource_name=key[1], pattern_type=key[2]
                )
            resource.acls.append(
                Resource.AclDescription(
                    principal=entry.principal,
                    host=entry.host,
                    operation=entry.operation,
                    permission_type=entry.permission_type,
                )
            )
        if not count % ENTRIES_A_STEP:
            yield
    return DescribeAclsResponse(resources=list(resources.values()))


def refused_acls(request: Message, error: KafkaError) -> CreateAclsResponse | DeleteAclsResponse:
    """The response that gives every part of the request the same error."""
    code, message = error.code, error.message or None
    if isinstance(request, CreateAclsRequest):
        return CreateAclsResponse(
            results=[Created(error_code=code, error_message=message) for _ in request.creations]
        )
    assert isinstance(request, DeleteAclsRequest)
    return DeleteAclsResponse(
        filter_results=[Deleted(error_code=code, error_message=message) for _ in request.filters]
    )


def unknown_fields(request: Message) -> Iterator[str]:
    """Names of fields that have the code 0, which Kafka answers by closing the connection."""
    parts: list[CreateAclsRequest.AclCreation | DeleteAclsRequest.DeleteAclsFilter | DescribeAclsRequest]
    if isinstance(request, CreateAclsRequest):
        parts = [*request.creations]
    elif isinstance(request, DeleteAclsRequest):
        parts = [*request.filters]
    else:
        assert isinstance(request, DescribeAclsRequest)
        parts = [request]
    for part in parts:
        for name in (
            "resource_type",
            "resource_type_filter",
            "resource_pattern_type",
            "pattern_type_filter",
            "operation",
            "permission_type",
        ):
            if getattr(part, name, None) == 0:
                yield name


def entry_of(creation: CreateAclsRequest.AclCreation) -> AccessControlEntry:
    return AccessControlEntry(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def filter_of(asked: DeleteAclsRequest.DeleteAclsFilter | DescribeAclsRequest) -> AclFilter:
    return AclFilter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )


def is_filter(creation: CreateAclsRequest.AclCreation) -> bool:
    return (
        creation.resource_type == ResourceType.ANY
        or creation.resource_pattern_type in (PatternType.ANY, PatternType.MATCH)
        or creation.operation == Operation.ANY
        or creation.permission_type == Permission.ANY
    )


def reason_invalid(entry: AccessControlEntry) -> str | None:
    if entry.resource_type == ResourceType.CLUSTER and entry.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not entry.resource_name:
        return "Invalid empty resource name"
    for kind, code, word in (
        (ResourceType, entry.resource_type, "resourceType"),
        (PatternType, entry.pattern_type, "patternType"),
        (Operation, entry.operation, "operation"),
        (Permission, entry.permission_type, "permissionType"),
    ):
        if code not in kind._value2member_map_:
            return f"Invalid {word} UNKNOWN"
    if ":" not in entry.principal:
        return (
            f"Could not parse principal from `{entry.principal}` (no colon is present separating the "
            "principal type from the principal name)"
        )
    return None


def record_of(acl_id: bytes, entry: AccessControlEntry) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )


def matching_of(entry: AccessControlEntry) -> Matching:
    return Matching(
        error_message=None,
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )
