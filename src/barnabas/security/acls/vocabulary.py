"""The words of ACLs: operations, resource types, pattern types, permissions, and Kafka's codes for them.

In: nothing. Out: enumerations, which operations a resource type has, which operations a rule implies, and the
error code of a refusal. Does not know: rules.
"""

from __future__ import annotations

from enum import IntEnum

from barnabas.protocol import ErrorCode


class Operation(IntEnum):
    """Kafka's codes of operations on a resource."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    ANY = 1
    MATCH = 2  # in filters: every pattern that applies to a name
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    ANY = 1
    DENY = 2
    ALLOW = 3


WILDCARD = "*"  # a literal resource name, or a host, that stands for all
ANY_USER = "User:*"
ROLES_TOPIC = "_barnabas_roles"  # holds the bindings of roles
CLUSTER_NAME = "kafka-cluster"  # the name of the one resource of type Cluster

OPERATIONS: dict[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}

REFUSALS: dict[ResourceType, ErrorCode] = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}

# Operations of an Allow rule that allow another operation as well. Deny rules imply nothing.
_IMPLYING: dict[Operation, tuple[Operation, ...]] = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}


def allowing(operation: Operation) -> frozenset[int]:
    """Operations of Allow rules that allow `operation`."""
    return _ALLOWING[operation]


def denying(operation: Operation) -> frozenset[int]:
    """Operations of Deny rules that deny `operation`."""
    return _DENYING[operation]


_ALLOWING = {each: frozenset({each, Operation.ALL, *_IMPLYING.get(each, ())}) for each in Operation}
_DENYING = {each: frozenset({each, Operation.ALL}) for each in Operation}


def word(value: IntEnum) -> str:
    """The word as Kafka's tools and logs write it: `TransactionalId`, `DescribeConfigs`."""
    return "".join(part.capitalize() for part in value.name.split("_"))
