"""What a caller must be allowed to do before a handler runs: declared at the handler, checked in one place.

In: nothing. Out: `Need` values with the resource type, the operation, and where in the request the names are.
The authorizer reads them. A handler that filters by name itself (Metadata) declares `per_item=True`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Need:
    operation: str
    resource: str = ""
    names: str = ""  # path of the names in the request: "topics.name"; empty for the cluster itself
    per_item: bool = False  # items that the caller may not see get an error each, or are left out


NOTHING = Need("none")


def read_topics(names: str) -> Need:
    return Need("read", "topic", names, per_item=True)


def write_topics(names: str) -> Need:
    return Need("write", "topic", names, per_item=True)


def describe_topics(names: str) -> Need:
    return Need("describe", "topic", names, per_item=True)


def create_topics(names: str) -> Need:
    return Need("create", "topic", names, per_item=True)


def alter_topics(names: str) -> Need:
    return Need("alter", "topic", names, per_item=True)


def delete_topics(names: str) -> Need:
    return Need("delete", "topic", names, per_item=True)


def describe_configs(names: str) -> Need:
    return Need("describe_configs", "by_resource", names, per_item=True)


def alter_configs(names: str) -> Need:
    return Need("alter_configs", "by_resource", names, per_item=True)


def describe_cluster_configs() -> Need:
    return Need("describe_configs", "cluster")


def alter_cluster_configs() -> Need:
    return Need("alter_configs", "cluster")


def describe_cluster() -> Need:
    return Need("describe", "cluster")


def alter_cluster() -> Need:
    return Need("alter", "cluster")


def produce_as(name: str) -> Need:
    """To write with the transactional id, or as an idempotent producer if there is none."""
    return Need("write", "transactional_id_or_cluster", name)


def write_transactional_id(name: str) -> Need:
    return Need("write", "transactional_id", name)


def describe_transactional_ids(names: str) -> Need:
    return Need("describe", "transactional_id", names, per_item=True)


def cluster_action() -> Need:
    return Need("cluster_action", "cluster")


def read_group(name: str) -> Need:
    return Need("read", "group", name)


def describe_groups(names: str) -> Need:
    return Need("describe", "group", names, per_item=True)


def delete_groups(names: str) -> Need:
    return Need("delete", "group", names, per_item=True)


def describe_coordinator(names: str) -> Need:
    return Need("describe", "by_key_type", names, per_item=True)
