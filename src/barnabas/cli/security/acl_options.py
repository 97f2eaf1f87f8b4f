"""The options of kafka-acls, checked in Kafka's order and turned into rules and filters.

In: options. Out: rules to add, filters to remove or list by. Does not know: connections, output.
"""

import argparse
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.cli.frame.connecting import is_server_given
from barnabas.cli.frame.parsing import ToolError, UsageError
from barnabas.client.admin.acls import AclFilter
from barnabas.security.acls.rules import Rule
from barnabas.security.acls.vocabulary import (
    CLUSTER_NAME,
    OPERATIONS,
    WILDCARD,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    word,
)

UNKNOWN = 0  # the code of an operation that does not exist
RESOURCE_OPTIONS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "delegation_token": ResourceType.DELEGATION_TOKEN,
    "user_principal": ResourceType.USER,
}
PRODUCER = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
CONSUMER = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}
NO_RESOURCE = (
    "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or "
    "--delegation-token <Delegation Token ID>"
)


class Resource(NamedTuple):
    type: ResourceType
    name: str
    pattern_type: PatternType

    def __str__(self) -> str:
        return (
            f"ResourcePattern(resourceType={self.type.name}, name={self.name}, "
            f"patternType={self.pattern_type.name})"
        )


class Entry(NamedTuple):
    """The part of an ACL that names no resource."""

    principal: str
    host: str
    operation: int
    permission: Permission

    def __str__(self) -> str:
        operation = Operation(self.operation).name if self.operation else "UNKNOWN"
        return (
            f"(principal={self.principal}, host={self.host}, operation={operation}, "
            f"permissionType={self.permission.name})"
        )


def rule_of(resource: Resource, entry: Entry) -> Rule:
    return Rule(
        resource.type,
        resource.name,
        resource.pattern_type,
        entry.principal,
        entry.host,
        entry.operation,
        entry.permission,
    )


def split_rule(rule: Rule) -> tuple[Resource, Entry]:
    resource = Resource(ResourceType(rule.resource_type), rule.name, PatternType(rule.pattern_type))
    return resource, Entry(rule.principal, rule.host, rule.operation, Permission(rule.permission))


def filter_of(resource: Resource, entry: Entry | None = None) -> AclFilter:
    if entry is None:
        return AclFilter(resource.type, resource.name, resource.pattern_type)
    return AclFilter(
        resource.type,
        resource.name,
        resource.pattern_type,
        entry.principal,
        entry.host,
        entry.operation,
        entry.permission,
    )


def check_options(options: argparse.Namespace) -> None:
    """Raise Kafka's error for options that do not go together."""
    controllers = options.bootstrap_controller
    if controllers and is_server_given(options):
        raise UsageError("Only one of --bootstrap-server or --bootstrap-controller must be specified")
    if not controllers and options.bootstrap_server is None:
        raise UsageError("One of --bootstrap-server or --bootstrap-controller must be specified")
    if [options.list, options.add, options.remove, options.explain].count(True) != 1:
        raise UsageError("Command must include exactly one action: --list, --add, --remove. ")
    rights = ("allow_host", "allow_principal", "deny_host", "deny_principal")
    refuse_together(options, "list", ("producer", "consumer", *rights))
    for convenience in ("producer", "consumer"):
        refuse_together(options, convenience, ("operation", "deny_principal", "deny_host"))
    if options.principal and not (options.list or options.explain):
        raise UsageError("The --principal option is only available if --list is set")
    if options.producer and not options.topic:
        raise UsageError("With --producer you must specify a --topic")
    if options.idempotent and not options.producer:
        raise UsageError("The --idempotent option is only available if --producer is set")
    others = not options.producer and (options.cluster or options.transactional_id)
    if options.consumer and (not options.topic or not options.group or others):
        raise UsageError(
            "With --consumer you must specify a --topic and a --group and no --cluster or "
            "--transactional-id option should be specified."
        )


def refuse_together(options: argparse.Namespace, used: str, invalid: Iterable[str]) -> None:
    for other in invalid if getattr(options, used) else ():
        if getattr(options, other):
            raise UsageError(f'Option "[{used}]" can\'t be used with option "[{other.replace("_", "-")}]"')


def pattern_type(options: argparse.Namespace) -> PatternType:
    text: str = options.resource_pattern_type
    try:
        return PatternType[text.upper()]
    except KeyError:
        raise ToolError(f"Cannot parse argument '{text}' of option resource-pattern-type") from None


def resources(options: argparse.Namespace, *, needed: bool) -> list[Resource]:
    pattern = pattern_type(options)
    found = [Resource(ResourceType.TOPIC, name.strip(), pattern) for name in options.topic or ()]
    if pattern == PatternType.LITERAL and (options.cluster or options.idempotent):
        found.append(Resource(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL))
    for option, kind in RESOURCE_OPTIONS.items():
        if kind != ResourceType.TOPIC:
            names = getattr(options, option) or ()
            found += [Resource(kind, name.strip(), pattern) for name in names]
    if not found and needed:
        raise UsageError(NO_RESOURCE)
    return list(dict.fromkeys(found))


def wanted_acls(options: argparse.Namespace) -> dict[Resource, list[Entry]]:
    """The resources of --add and --remove, each with the entries that the options describe."""
    named = resources(options, needed=True)
    found: dict[Resource, list[Entry]] = {}
    if not options.producer and not options.consumer:
        operations = [operation_named(text.strip()) for text in options.operation or ("All",)]
        found = {resource: entries(options, operations) for resource in named}
    for is_given, rights in ((options.producer, PRODUCER), (options.consumer, CONSUMER)):
        for resource in named if is_given else ():
            if resource.type in rights:
                found.setdefault(resource, []).extend(entries(options, rights[resource.type]))
    if options.idempotent:
        cluster = Resource(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
        found[cluster] = entries(options, (Operation.IDEMPOTENT_WRITE,))
    for resource, acls in found.items():
        found[resource] = list(dict.fromkeys(acls))
        check_operations(resource.type, acls)
    return found


def operation_named(text: str) -> int:
    """The operation of a word such as `DescribeConfigs`, in any case; UNKNOWN for another word."""
    return next((each for each in Operation if word(each).lower() == text.lower()), UNKNOWN)


def check_operations(kind: ResourceType, acls: Iterable[Entry]) -> None:
    known = (*OPERATIONS[kind], Operation.ALL)
    if any(entry.operation not in known for entry in acls):
        listed = ", ".join(each.name for each in known)
        raise UsageError(f"ResourceType {kind.name} only supports operations [{listed}]")


def entries(options: argparse.Namespace, operations: Sequence[int]) -> list[Entry]:
    found = []
    for permission, principals, hosts in (
        (Permission.ALLOW, options.allow_principal, options.allow_host),
        (Permission.DENY, options.deny_principal, options.deny_host),
    ):
        for principal in map(checked_principal, principals or ()):
            for operation in operations:
                if operation == Operation.ANY:
                    raise ToolError("operation must not be ANY")
                found += [
                    Entry(principal, host.strip(), operation, permission) for host in hosts or (WILDCARD,)
                ]
    return found


def checked_principal(text: str) -> str:
    kind, colon, _ = text.strip().partition(":")
    if not colon or not kind:
        raise ToolError(f"expected a string in format principalType:principalName but got {text.strip()}")
    return text.strip()
