"""ACLs as resources of v3: found by filters, created one by one or together, deleted by filters."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.responses import Response

from barnabas.client.admin.acls import AclFilter
from barnabas.rest.kafka_errors import refusal
from barnabas.rest.v3 import lists
from barnabas.rest.v3.call import Call
from barnabas.rest.v3.fields import Fields
from barnabas.rest.v3.resources import Links, Resource
from barnabas.rest.v3.schemas import OTHER_CLUSTER, PATH_TYPES, REFUSED, WRITES
from barnabas.rest.v3.vocabulary import (
    OPERATION_WORDS,
    PATTERN_TYPE_WORDS,
    PERMISSION_WORDS,
    RESOURCE_TYPE_WORDS,
    operation_word,
    pattern_type_word,
    permission_word,
    resource_type_word,
)
from barnabas.security.acls.rules import Rule
from barnabas.security.acls.vocabulary import Operation, PatternType, Permission, ResourceType
from barnabas.services.openapi import Failure, Operations, Parameter
from barnabas.services.routes import Need

ACLS = Operations("v3: ACLs", PATH_TYPES, writes=Need.ADMIN)
PATH = "/v3/clusters/{cluster_id}/acls"
ANY = "ANY"
NEEDED_TO_DELETE = ("resource_type", "pattern_type", "operation", "permission")
TYPES = {
    "resource_type": "AclResourceType",
    "resource_name": "string",
    "pattern_type": "AclPatternType",
    "principal": "string",
    "host": "string",
    "operation": "AclOperation",
    "permission": "AclPermission",
}
FILTERS = tuple(Parameter(name, schema) for name, schema in TYPES.items())
DELETE_FILTERS = tuple(each._replace(required=each.name in NEEDED_TO_DELETE) for each in FILTERS)
BAD_FILTER = Failure(400, 400, "a filter is missing or has another word")


@ACLS.declare(
    "GET",
    PATH,
    "List ACLs; a filter that is not given lets all through",
    query=FILTERS,
    responses={200: "AclDataList"},
    errors=(OTHER_CLUSTER, BAD_FILTER, REFUSED),
)
async def list_acls(call: Call) -> Response:
    rules = await call.kafka.admin.describe_acls(filter_of(call))
    found = (acl_resource(call.links, rule) for rule in rules)
    given = {name: text for name in TYPES if (text := call.query(name)) is not None}
    url = call.links.url("acls") + (f"?{urlencode(given)}" if given else "")
    return await lists.listed("KafkaAclList", url, lists.page_of(found))


@ACLS.declare(
    "POST",
    PATH,
    "Create an ACL",
    request="CreateAclRequestData",
    responses={201: None},
    errors=WRITES,
)
async def create_acl(call: Call) -> Response:
    rule = rule_of(Fields(await call.body(), TYPES))
    await call.kafka.admin.create_acls([rule])
    return Response(status_code=201, headers={"location": acl_url(call.links, rule)})


@ACLS.declare(
    "POST",
    f"{PATH}:batch",
    "Create ACLs",
    request="CreateAclRequestDataList",
    responses={204: None},
    errors=WRITES,
)
async def create_acls(call: Call) -> Response:
    items = Fields(await call.body(), ("data",)).items("data")
    rules = [rule_of(Fields(value, TYPES, place)) for value, place in items]
    if rules:
        await call.kafka.admin.create_acls(rules)
    return Response(status_code=204)


@ACLS.declare(
    "DELETE",
    PATH,
    "Delete the ACLs that a filter finds",
    query=DELETE_FILTERS,
    responses={200: "DeletedAcls"},
    errors=(OTHER_CLUSTER, BAD_FILTER, REFUSED),
)
async def delete_acls(call: Call) -> Response:
    for name in NEEDED_TO_DELETE:
        if call.query(name) is None:
            raise refusal(400, 400, f"The parameter {name} is required: ANY stands for all.")
    deleted = await call.kafka.admin.delete_acls([filter_of(call)])
    return lists.one({"data": [acl_resource(call.links, rule) for rule in deleted]})


def filter_of(call: Call) -> AclFilter:
    return AclFilter(
        ResourceType[call.choice("resource_type", RESOURCE_TYPE_WORDS) or ANY],
        call.query("resource_name"),
        PatternType[call.choice("pattern_type", PATTERN_TYPE_WORDS) or ANY],
        call.query("principal"),
        call.query("host"),
        Operation[call.choice("operation", OPERATION_WORDS) or ANY],
        Permission[call.choice("permission", PERMISSION_WORDS) or ANY],
    )


def rule_of(fields: Fields) -> Rule:
    return Rule(
        ResourceType[fields.word("resource_type", RESOURCE_TYPE_WORDS)],
        fields.text("resource_name"),
        PatternType[fields.word("pattern_type", PATTERN_TYPE_WORDS)],
        fields.text("principal"),
        fields.text("host"),
        Operation[fields.word("operation", OPERATION_WORDS)],
        Permission[fields.word("permission", PERMISSION_WORDS)],
    )


def fields_of(rule: Rule) -> dict[str, str]:
    return {
        "resource_type": resource_type_word(rule.resource_type),
        "resource_name": rule.name,
        "pattern_type": pattern_type_word(rule.pattern_type),
        "principal": rule.principal,
        "host": rule.host,
        "operation": operation_word(rule.operation),
        "permission": permission_word(rule.permission),
    }


def acl_url(links: Links, rule: Rule) -> str:
    return f"{links.url('acls')}?{urlencode(fields_of(rule))}"


def acl_resource(links: Links, rule: Rule) -> Resource:
    return links.resource("KafkaAcl", acl_url(links, rule), None, fields_of(rule))
