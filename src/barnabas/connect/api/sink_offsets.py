"""Offsets of sinks: those of the consumer group `connect-<name>`, in the form of the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.topology import TopicPartition
from barnabas.connect.herder.errors import Refused, not_stopped, offsets_changed
from barnabas.connect.herder.herder import Herder
from barnabas.connect.herder.states import Target
from barnabas.protocol import ErrorCode, KafkaError


def group_of(name: str, config: Mapping[str, str]) -> str:
    return config.get("consumer.override.group.id", f"connect-{name}")


class SinkGroups:
    def __init__(self, cluster: ClusterCore) -> None:
        self._admin = Admin(cluster)

    async def read(self, name: str, config: Mapping[str, str]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        found = await self._committed(group_of(name, config))
        return [
            (
                {"kafka_topic": each.topic, "kafka_partition": each.partition},
                {"kafka_offset": offset},
            )
            for each, offset in sorted(found.items())
        ]

    async def _committed(self, group: str) -> dict[TopicPartition, int]:
        try:
            found = await self._admin.committed_offsets(group)
        except KafkaError as error:
            if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
                return {}
            raise
        return {
            each: int(getattr(entry, "offset", -1))
            for each, entry in found.items()
            if int(getattr(entry, "offset", -1)) >= 0
        }

    async def change(self, herder: Herder, name: str, pairs: list[tuple[Any, Any]] | None) -> str:
        """Set offsets of a stopped sink; None resets all of them."""
        herder.must_lead()
        config = herder.config(name)
        if herder.state.target(name) is not Target.STOPPED or herder.state.tasks.get(name):
            raise not_stopped(name)
        group = group_of(name, config)
        wanted = None if pairs is None else {place_of(part): offset_of(offset) for part, offset in pairs}
        known = await self.read(name, config) if pairs is None else []
        has_say = await herder.checked_offsets(name, pairs or [(part, None) for part, _ in known])
        try:
            if wanted is None:
                await self._admin.delete_groups([group])
            else:
                await self._alter(group, wanted)
        except KafkaError as error:
            if wanted is not None or error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise Refused(
                    500, f"Failed to alter consumer group offsets for connector {name}: {error}"
                ) from error
        return offsets_changed("reset" if pairs is None else "altered", has_say)

    async def _alter(self, group: str, wanted: Mapping[TopicPartition, int | None]) -> None:
        known = await self._admin.list_offsets(dict.fromkeys(wanted, OffsetSpec.LATEST))
        for place, found in known.items():
            if isinstance(found, KafkaError):
                raise Refused(500, f"{place} cannot be read: {found}")
        kept = {place: offset for place, offset in wanted.items() if offset is not None}
        removed = [place for place, offset in wanted.items() if offset is None]
        results = await self._admin.alter_offsets(group, kept) if kept else {}
        results |= await self._admin.delete_offsets(group, removed) if removed else {}
        for error in results.values():
            if error is not None:
                raise error


def place_of(partition: Mapping[str, Any]) -> TopicPartition:
    if partition.get("kafka_topic") is None or partition.get("kafka_partition") is None:
        raise Refused(
            400,
            "The partition for a sink connector offset must contain the keys 'kafka_topic' and "
            "'kafka_partition'",
        )
    number = whole_number(partition["kafka_partition"])
    if number is None:
        raise unparsed("partition", partition["kafka_partition"])
    return TopicPartition(str(partition["kafka_topic"]), number)


def offset_of(offset: Mapping[str, Any] | None) -> int | None:
    if offset is None:
        return None
    if offset.get("kafka_offset") is None:
        raise Refused(
            400,
            "The offset for a sink connector should either be null or contain the key 'kafka_offset'",
        )
    found = whole_number(offset["kafka_offset"])
    if found is None:
        raise unparsed("offset", offset["kafka_offset"])
    if found < 0:
        raise Refused(500, f"The offset {found} is negative")
    return found


def whole_number(value: object) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None


def unparsed(word: str, value: object) -> Refused:
    return Refused(
        400,
        f"Failed to parse the following Kafka {word} value in the provided offsets: '{value}'. "
        f"{word.capitalize()} values for sink connectors need to be integers.",
    )
