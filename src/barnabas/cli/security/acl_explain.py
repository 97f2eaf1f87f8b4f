"""acls --explain: whether a principal may do an operation, and which rule decides.

In: the principal, the operation, one resource, the caller's address. Out: the decision and its reason, made
here from the ACLs and the bindings of roles that the cluster shows. Super users are settings of nodes, which
no request tells: the options name them. The exit status is 0 if the operation is allowed, else 2.
"""

import argparse

from barnabas.cli.frame.connecting import cluster_from, load_properties
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, UsageError
from barnabas.cli.security.acl_options import (
    UNKNOWN,
    Entry,
    Resource,
    check_operations,
    checked_principal,
    operation_named,
    resources,
)
from barnabas.client import role_topic
from barnabas.client.admin.admin import Admin
from barnabas.client.cluster import Cluster
from barnabas.protocol import KafkaError
from barnabas.security.acls.authorizer import StandardAuthorizer, parse_super_users
from barnabas.security.acls.roles import rules_of
from barnabas.security.acls.vocabulary import WILDCARD, Operation, PatternType, Permission, word

ALLOWED, DENIED = 0, 2
ROLES = "roles"


async def explain(options: argparse.Namespace, out: Output) -> int:
    principal, operation, resource = question(options)
    node = load_properties(options.server_properties)
    try:
        super_users = parse_super_users(node.get("super.users", ""))
    except ValueError as error:
        raise ToolError(str(error)) from None
    everyone = node.get("allow.everyone.if.no.acl.found", "false").strip().lower() == "true"
    authorizer = StandardAuthorizer(super_users, allows_everyone=everyone)
    async with cluster_from(options) as cluster:
        authorizer.change(added=await Admin(cluster).describe_acls())
        if not cluster.is_quorum:
            await add_roles(authorizer, cluster, out)
    host = options.host or WILDCARD
    decision = authorizer.decide(principal, host, operation, resource.type, resource.name)
    verdict = "allowed" if decision.is_allowed else "denied"
    where = "any address" if host == WILDCARD else host
    out.line(
        f"{verdict}: {principal} from {where}, {word(operation)} on {word(resource.type)} {resource.name}"
    )
    out.line(f"  because: {decision.reason}")
    if options.server_properties is None:
        out.note("note: without --server-properties, super.users of the nodes are not known here")
    return ALLOWED if decision.is_allowed else DENIED


async def add_roles(authorizer: StandardAuthorizer, cluster: Cluster, out: Output) -> None:
    try:
        authorizer.replace_source(ROLES, rules_of(await role_topic.read(cluster)))
    except KafkaError as error:
        out.note(f"note: the bindings of roles cannot be read ({error.message})")


def question(options: argparse.Namespace) -> tuple[str, Operation, Resource]:
    if len(options.principal or ()) != 1 or len(options.operation or ()) != 1:
        raise UsageError("--explain needs one --principal and one --operation")
    named = resources(options, needed=True)
    if len(named) != 1 or named[0].pattern_type != PatternType.LITERAL:
        raise UsageError("--explain needs the name of one resource")
    [resource] = named
    operation = operation_named(options.operation[0].strip())
    principal = checked_principal(options.principal[0])
    check_operations(resource.type, [Entry(principal, WILDCARD, operation, Permission.ALLOW)])
    if operation in (UNKNOWN, Operation.ALL):
        raise UsageError("--explain needs one operation, such as Read")
    return principal, Operation(operation), resource
