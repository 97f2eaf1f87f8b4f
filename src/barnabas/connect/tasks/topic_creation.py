"""Topics that a source creates: KIP-158's groups of settings.

In: settings of a connector. Out: the first group whose patterns match a topic, and the topic made with it.
Without these settings the broker creates topics by its own rules, or refuses. Does not know: records.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.client.admin.topics import NewTopic, TopicAdmin
from barnabas.client.blocking import run
from barnabas.connect.plugins import ConnectError
from barnabas.protocol import ErrorCode, KafkaError

PREFIX = "topic.creation."
DEFAULT = "default"
OWN = ("include", "exclude", "partitions", "replication.factor")


@dataclass(frozen=True, slots=True)
class CreationGroup:
    name: str
    partitions: int
    replication_factor: int
    include: tuple[re.Pattern[str], ...] = ()
    exclude: tuple[re.Pattern[str], ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)

    def matches(self, topic: str) -> bool:
        if any(each.fullmatch(topic) for each in self.exclude):
            return False
        return self.name == DEFAULT or any(each.fullmatch(topic) for each in self.include)


def creation_groups(config: Mapping[str, str]) -> list[CreationGroup]:
    """Groups in the order in which they are tried; the default one last. None at all: no creation."""
    prefix = f"{PREFIX}{DEFAULT}."
    if prefix + "partitions" not in config and prefix + "replication.factor" not in config:
        return []
    names = [each.strip() for each in config.get(PREFIX + "groups", "").split(",") if each.strip()]
    default = group_of(config, DEFAULT, None)
    return [*(group_of(config, name, default) for name in names if name != DEFAULT), default]


def group_of(config: Mapping[str, str], name: str, default: CreationGroup | None) -> CreationGroup:
    prefix = f"{PREFIX}{name}."
    given = {key.removeprefix(prefix): text for key, text in config.items() if key.startswith(prefix)}
    numbers = {}
    for setting, other in (("partitions", "partitions"), ("replication.factor", "replication_factor")):
        text = given.get(setting)
        if text is None and default is None:
            raise ConnectError(f"{prefix}{setting} is missing: the default group needs both numbers")
        try:
            numbers[other] = getattr(default, other) if text is None else int(text)
        except ValueError:
            raise ConnectError(f"{prefix}{setting} is {text!r}: a whole number is needed") from None
        if numbers[other] == 0 or numbers[other] < -1:
            raise ConnectError(
                f"{prefix}{setting} is {text}: it must be positive, or -1 for the broker's default"
            )
    if default is not None and not given.get("include", "").strip():
        raise ConnectError(f"{prefix}include is missing: a group needs patterns of topics")
    return CreationGroup(
        name,
        numbers["partitions"],
        numbers["replication_factor"],
        patterns(given.get("include", ""), prefix + "include"),
        patterns(given.get("exclude", ""), prefix + "exclude"),
        {key: text for key, text in given.items() if key not in OWN},
    )


def patterns(text: str, setting: str) -> tuple[re.Pattern[str], ...]:
    try:
        return tuple(re.compile(each.strip()) for each in text.split(",") if each.strip())
    except re.error as error:
        raise ConnectError(f"{setting} is {text!r}: {error}") from None


class TopicCreation:
    """Makes a topic before the first record is written to it."""

    def __init__(self, groups: list[CreationGroup]) -> None:
        self._groups = groups

    def __call__(self, admin: TopicAdmin, topic: str) -> None:
        group = next((each for each in self._groups if each.matches(topic)), None)
        if group is None:
            return
        make_topic(
            admin, NewTopic(topic, group.partitions, group.replication_factor, configs=dict(group.configs))
        )


def make_topic(admin: TopicAdmin, topic: NewTopic) -> bool:
    """Create it; False if it is there already."""
    try:
        run(admin.create_topic(topic))
    except KafkaError as error:
        if error.code == ErrorCode.TOPIC_ALREADY_EXISTS:
            return False
        raise ConnectError(f"topic {topic.name} cannot be created: {error}") from error
    return True
