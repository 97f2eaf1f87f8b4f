"""The rights that a caller needs for a request: declared at the handler, checked in one place.

In: nothing. Out: `Need` values. `broker.access.checking` turns the needs of an endpoint into checks before
its handler. A need with `is_asked_by_handler` depends on what the handler finds: the handler asks for it with
`RequestContext.may`. Names are paths in the request: `group_id`, `topics.name` (of each item), `groups.` (the
items are the names). Does not know: rules, who is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from barnabas.metadata.configs import ResourceType as ConfigType
from barnabas.protocol import ErrorCode
from barnabas.security.acls.vocabulary import REFUSALS, Operation, ResourceType

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID
VERSION_MAX = 1 << 15


class Where(Enum):
    """The part of a response that shows a refusal."""

    REQUEST = "request"  # the whole request is refused, in the form of its API's error response
    ITEM = "item"  # each refused item has the error, the others are served
    LEFT_OUT = "left out"  # refused items are missing from the response, and no error tells


class Instead(Enum):
    """A right that suffices instead of the need's own."""

    CLUSTER_CREATE = (Operation.CREATE, CLUSTER)
    CLUSTER_DELETE = (Operation.DELETE, CLUSTER)
    CLUSTER_ALTER = (Operation.ALTER, CLUSTER)
    CLUSTER_ACTION = (Operation.CLUSTER_ACTION, CLUSTER)
    CLUSTER_DESCRIBE = (Operation.DESCRIBE, CLUSTER)
    ANY_TOPIC_WRITE = (Operation.WRITE, TOPIC)  # on at least one topic
    OWNER_DESCRIBE_TOKENS = (Operation.DESCRIBE_TOKENS, ResourceType.USER)


@dataclass(frozen=True, slots=True)
class Need:
    operation: Operation
    resource: ResourceType
    names: str = ""  # empty for the cluster, and where the handler knows the names
    where: Where = Where.REQUEST
    into: str = ""  # the list of the response that refused items go to
    instead: Instead | None = None
    refusal: ErrorCode | None = None  # None: that of the resource type, or none for LEFT_OUT
    version_min: int = 0
    version_max: int = VERSION_MAX
    when: Callable[[Any], Any] | None = None  # of the item (`Where.ITEM`) or of the request
    when_request: Callable[[Any], bool] | None = None  # of the request, for items
    listeners: str = "broker controller"
    is_asked_by_handler: bool = False

    @property
    def code(self) -> ErrorCode:
        return self.refusal if self.refusal is not None else REFUSALS[self.resource]

    def up_to(self, version: int) -> Need:
        return replace(self, version_max=version)

    def since(self, version: int) -> Need:
        return replace(self, version_min=version)

    def if_(self, when: Callable[[Any], Any]) -> Need:
        """The need holds for requests (`Where.ITEM`: for items) of which `when` is true."""
        return replace(self, when=when)

    def if_request(self, when: Callable[[Any], bool]) -> Need:
        """The same for all items of a request."""
        return replace(self, when_request=when)

    def on(self, listeners: str) -> Need:
        """The need holds on these kinds of listeners only."""
        return replace(self, listeners=listeners)

    def or_(self, instead: Instead) -> Need:
        return replace(self, instead=instead)

    def asked_by_handler(self) -> Need:
        return replace(self, is_asked_by_handler=True)

    def left_out(self) -> Need:
        return replace(self, where=Where.LEFT_OUT, is_asked_by_handler=True)


Needs = tuple[Need, ...]
NOTHING: Needs = ()


def cluster(operation: Operation) -> Need:
    return Need(operation, CLUSTER)


def group(operation: Operation, names: str = "group_id") -> Need:
    return Need(operation, GROUP, names)


def transactional_id(operation: Operation, names: str = "transactional_id") -> Need:
    return Need(operation, TRANSACTIONAL_ID, names)


def topics(operation: Operation, names: str = "") -> Need:
    """One refused topic refuses the whole request."""
    return Need(operation, TOPIC, names)


def each(resource: ResourceType, operation: Operation, names: str, into: str) -> Need:
    """Each refused item gets its own error in the list `into` of the response."""
    return Need(operation, resource, names, Where.ITEM, into)


describe_cluster = cluster(Operation.DESCRIBE)
alter_cluster = cluster(Operation.ALTER)
describe_cluster_configs = cluster(Operation.DESCRIBE_CONFIGS)
alter_cluster_configs = cluster(Operation.ALTER_CONFIGS)
cluster_action = cluster(Operation.CLUSTER_ACTION)
read_group = group(Operation.READ)
write_transactional_id = transactional_id(Operation.WRITE)
describe_shown_topics = Need(Operation.DESCRIBE, TOPIC).left_out()


def of_configs(operation: Operation, into: str) -> Needs:
    """The rights for settings of the resources in a request, each by its type."""

    def of_type(resource: ResourceType, *types: ConfigType) -> Need:
        need = each(resource, operation, "resources.resource_name", into)
        return need.if_(lambda item: item.resource_type in types)

    brokers = [ConfigType.BROKER, ConfigType.CLIENT_METRICS]
    if operation is Operation.DESCRIBE_CONFIGS:
        brokers.append(ConfigType.BROKER_LOGGER)
    return (
        of_type(CLUSTER, *brokers),
        of_type(TOPIC, ConfigType.TOPIC),
        of_type(GROUP, ConfigType.GROUP),
    )
