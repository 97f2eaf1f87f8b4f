"""Shapes of the API's bodies and its error codes, for the OpenAPI description.

In: nothing. Out: components by name; failures by code.
Does not know: endpoints.
"""

from __future__ import annotations

from typing import Any

from barnabas.registry.api.media_types import REQUEST_TYPES, RESPONSE_TYPES
from barnabas.registry.state.config import POLICIES, Level, Mode
from barnabas.services.openapi import Failure, Parameter, Schema, nullable, object_of, one_of, schema_of

STRINGS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
STRING_MAP: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}
TAG_MAP: dict[str, Any] = {"type": "object", "additionalProperties": STRINGS}

TEXTS = {
    40401: "no such subject",
    40402: "no such version",
    40403: "no such schema",
    40404: "the subject is soft-deleted already",
    40405: "the subject was not soft-deleted first",
    40406: "the version is soft-deleted already",
    40407: "the version was not soft-deleted first",
    40408: "the subject has no configuration of its own",
    40409: "the subject has no mode of its own",
    40410: "no such association",
    40901: "incompatible with an earlier schema",
    40902: "too many associations",
    40903: "the resource has an association of this type",
    40904: "the subject has an association",
    40905: "the subject has a strong association",
    40907: "the subject has no version",
    40908: "the association is frozen",
    42201: "invalid schema",
    42202: "invalid version",
    42203: "invalid compatibility level",
    42204: "invalid mode",
    42205: "not permitted, by the mode in most cases",
    42206: "another schema refers to this one",
    42208: "invalid subject",
    42209: "the schema is too large",
    42210: "invalid rule set",
    42211: "the context still holds subjects",
    42212: "invalid association",
    50001: "the store failed",
    50002: "the store took too long",
    50003: "the primary cannot be reached",
    50004: "no primary is known",
}


def failures(*codes: int) -> tuple[Failure, ...]:
    return tuple(Failure(code // 100, code, TEXTS[code]) for code in codes)


WRITE_FAILURES = failures(50001, 50002, 50003, 50004)
NO_BODY = (Failure(400, 400, "the body has another shape"), Failure(422, 422, "there is no body"))

FORMAT = Parameter("format", text="Another form of the text: resolved (Avro), serialized (Protobuf)")
DELETED = Parameter("deleted", "boolean", "Soft-deleted ones too")
NORMALIZE = Parameter("normalize", "boolean", "Compare and store the normalized text")
OFFSET = Parameter("offset", "integer", "How many entries to leave out")
LIMIT = Parameter("limit", "integer", "How many entries at most; -1: the server's default")
PAGE = (OFFSET, LIMIT)
DEFAULT_TO_GLOBAL = Parameter(
    "defaultToGlobal", "boolean", "Take the setting of a wider scope if there is none"
)
DRY_RUN = Parameter("dryRun", "boolean", "Check only")

TYPES: dict[str, Any] = {"request_types": REQUEST_TYPES, "response_types": RESPONSE_TYPES}


def fields(**given: Schema) -> dict[str, Any]:
    return object_of(optional=given)


CONTENT: dict[str, Schema] = {
    "guid": "string",
    "schemaType": "string",
    "references": ["SchemaReference"],
    "metadata": "Metadata",
    "ruleSet": "RuleSet",
    "schema": "string",
    "schemaTags": ["SchemaTags"],
    "ts": "long",
    "deleted": "boolean",
}
SETTINGS: dict[str, Schema] = {
    "alias": nullable("string"),
    "aliasForDeks": nullable("string"),
    "normalize": nullable("boolean"),
    "validateFields": nullable("boolean"),
    "validateNewSchemas": nullable("boolean"),
    "validateRules": nullable("boolean"),
    "compatibilityPolicy": one_of(*POLICIES),
    "compatibilityGroup": nullable("string"),
    "defaultMetadata": nullable("Metadata"),
    "overrideMetadata": nullable("Metadata"),
    "defaultRuleSet": nullable("RuleSet"),
    "overrideRuleSet": nullable("RuleSet"),
}
RESOURCE: dict[str, Schema] = {
    "resourceName": "string",
    "resourceNamespace": "string",
    "resourceId": "string",
    "resourceType": "string",
}
LIFECYCLE = one_of("STRONG", "WEAK")
ASSOCIATION: dict[str, Schema] = {
    "subject": "string",
    "associationType": "string",
    "lifecycle": LIFECYCLE,
    "frozen": "boolean",
}
REQUEST: dict[str, Schema] = {
    "version": "integer",
    "id": "integer",
    "schemaType": "string",
    "references": ["SchemaReference"],
    "metadata": "Metadata",
    "ruleSet": "RuleSet",
    "schema": "string",
    "schemaTagsToAdd": ["SchemaTags"],
    "schemaTagsToRemove": ["SchemaTags"],
    "propagateSchemaTags": "boolean",
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "SchemaReference": object_of({"name": "string", "subject": "string"}, {"version": "integer"}),
    "Metadata": fields(tags=TAG_MAP, properties=STRING_MAP, sensitive=STRINGS),
    "Rule": fields(
        name="string",
        doc="string",
        kind=one_of("TRANSFORM", "CONDITION"),
        mode=one_of("UPGRADE", "DOWNGRADE", "UPDOWN", "WRITE", "READ", "WRITEREAD"),
        type="string",
        tags=STRINGS,
        params=STRING_MAP,
        expr="string",
        onSuccess="string",
        onFailure="string",
        disabled="boolean",
    ),
    "RuleSet": fields(
        migrationRules=["Rule"],
        domainRules=["Rule"],
        encodingRules=["Rule"],
        enableAt=one_of("ALL", "CLIENT", "GATEWAY", "SERVER", "NONE"),
    ),
    "SchemaTags": fields(
        schemaEntity=fields(entityPath="string", entityType=one_of("sr_record", "sr_field")), tags=STRINGS
    ),
    "RegisterSchemaRequest": fields(**REQUEST),
    "RegisterSchemaResponse": object_of({"id": "integer"}, {"version": "integer", **CONTENT}),
    "TagSchemaRequest": fields(
        newVersion="integer",
        tagsToAdd=["SchemaTags"],
        tagsToRemove=["SchemaTags"],
        metadata="Metadata",
        ruleSet="RuleSet",
        rulesToMerge="RuleSet",
        rulesToRemove=STRINGS,
    ),
    "SchemaString": object_of(
        {"schema": "string"}, {**CONTENT, "subject": "string", "version": "integer", "maxId": "integer"}
    ),
    "Schema": object_of(
        {"subject": "string", "version": "integer", "id": "integer", "schema": "string"}, CONTENT
    ),
    "ExtendedSchema": object_of(
        {"subject": "string", "version": "integer", "id": "integer", "schema": "string"},
        {**CONTENT, "aliases": STRINGS, "associations": ["Association"]},
    ),
    "SubjectVersion": object_of({"subject": "string", "version": "integer"}),
    "ContextId": object_of({"context": "string", "id": "integer"}),
    "CompatibilityCheckResponse": object_of({"is_compatible": "boolean"}, {"messages": STRINGS}),
    "Config": fields(**SETTINGS, compatibilityLevel=one_of(*Level)),
    "ConfigUpdateRequest": fields(**SETTINGS, compatibility=one_of(*Level)),
    "Mode": object_of({"mode": one_of(*Mode)}),
    "ModeUpdateRequest": fields(mode=nullable("string")),
    "Association": fields(**RESOURCE, **ASSOCIATION, guid="string", createTs="long", updateTs="long"),
    "AssociationInfo": fields(**ASSOCIATION, schema="Schema"),
    "AssociationResponse": fields(**RESOURCE, associations=["AssociationInfo"]),
    "AssociationChange": fields(**ASSOCIATION, schema="RegisterSchemaRequest", normalize="boolean"),
    "AssociationRequest": fields(**RESOURCE, associations=["AssociationChange"]),
    "AssociationOperation": fields(
        opType=one_of("CREATE", "UPSERT", "DELETE"), **ASSOCIATION, schema="RegisterSchemaRequest"
    ),
    "AssociationBatchRequest": fields(
        requests={"type": "array", "items": fields(**RESOURCE, associations=["AssociationOperation"])}
    ),
    "AssociationBatchResponse": fields(
        results={"type": "array", "items": fields(error="Error", result="AssociationResponse")}
    ),
    "ServerClusterId": fields(id="string", scope=schema_of("object")),
    "ServerVersion": fields(version="string", commitId="string"),
    "Deployment": fields(attributes=STRINGS),
}
