"""The topics of an alert service: the present state, and the history of all changes.

In: changes of alerts, silences. Out: the same after a restart, on this or another host. The state is
compacted: one record for each alert that fires or whose end is not told yet, one for each silence, and one
for each target with what it takes for firing; a record without a value ends it. The history is deleted by
age. Does not know: rules, targets.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import FoundOffset, OffsetSpec
from barnabas.client.admin.topics import NewTopic
from barnabas.client.consumer import Consumer, ConsumerSettings, OnOutOfRange
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.topology import TopicPartition
from barnabas.client.producer import NewRecord, Producer, ProducerSettings
from barnabas.monitor.alerts.silences import Silence
from barnabas.monitor.alerts.states import Alert, State
from barnabas.protocol import ErrorCode, KafkaError

log = logging.getLogger("barnabas.alerts")

STATE_TOPIC, HISTORY_TOPIC = "_barnabas_alerts", "_barnabas_alert_history"
HISTORY_MS = 90 * 86_400_000
REPLICAS = 3
POLL_MS = 1_000.0
HISTORY_MAX = 10_000  # changes that one question returns
ALERT, SILENCE, TOLD = "alert/", "silence/", "told/"
CONFIGS = {
    STATE_TOPIC: {"cleanup.policy": "compact"},
    HISTORY_TOPIC: {"cleanup.policy": "delete", "retention.ms": str(HISTORY_MS)},
}


@dataclass(slots=True)
class KeptState:
    alerts: dict[str, Alert] = field(default_factory=dict)  # by fingerprint
    silences: dict[str, Silence] = field(default_factory=dict)
    told: dict[str, set[str]] = field(default_factory=dict)  # by target: what it takes for firing
    underway: dict[str, set[str]] = field(default_factory=dict)  # by target: what it may have heard of, too
    told_ms: int = 0

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Take a record of the state. One that nobody can read is logged and skipped."""
        try:
            name = (key or b"").decode()
            found = json.loads(value) if value is not None else None
            if name.startswith(ALERT):
                self._set(self.alerts, name.removeprefix(ALERT), found and Alert.from_json(found))
            elif name.startswith(SILENCE):
                self._set(self.silences, name.removeprefix(SILENCE), found and Silence.from_json(found))
            elif name.startswith(TOLD) and found is not None:
                self.told[name.removeprefix(TOLD)] = set(found["fingerprints"])
                self.underway[name.removeprefix(TOLD)] = set(found.get("underway", ()))
                self.told_ms = max(self.told_ms, int(found["time_ms"]))
            elif name.startswith(TOLD):
                self.told.pop(name.removeprefix(TOLD), None)
                self.underway.pop(name.removeprefix(TOLD), None)
        except (ValueError, KeyError, TypeError) as error:
            log.warning("a record of %s is skipped: %s", STATE_TOPIC, error)

    @staticmethod
    def _set(known: dict[str, Any], name: str, found: Any) -> None:
        if found is None:
            known.pop(name, None)
        else:
            known[name] = found


class StateFollower:
    """The state as the topic has it, always up to date: other processes add silences and tell targets."""

    def __init__(self, cluster: ClusterCore) -> None:
        self.kept = KeptState()
        self._cluster = cluster
        self._place = TopicPartition(STATE_TOPIC, 0)
        self._read = asyncio.Condition()
        self._position = 0

    async def run(self) -> None:
        """Follow the topic until cancelled."""
        consumer = Consumer(self._cluster, ConsumerSettings(on_out_of_range=OnOutOfRange.EARLIEST))
        try:
            await consumer.assign_at([self._place], OffsetSpec.EARLIEST)
            while True:
                async with self._read:
                    self._position = consumer.positions[self._place]
                    self._read.notify_all()
                for each in await consumer.poll(POLL_MS):
                    self.kept.apply(each.key, each.value)
        finally:
            await consumer.close()

    async def caught_up(self) -> None:
        """Wait until everything is read that the topic has now."""
        end = (await Admin(self._cluster).list_offsets({self._place: OffsetSpec.LATEST}))[self._place]
        if not isinstance(end, FoundOffset):
            raise end
        goal = end.offset
        async with self._read:
            await self._read.wait_for(lambda: self._position >= goal)


class AlertTopics:
    def __init__(self, cluster: ClusterCore) -> None:
        self._cluster = cluster
        self._producer = Producer(cluster, ProducerSettings(acks=-1, idempotence=False))

    async def create(self) -> None:
        """Make both topics with three replicas, or as many as there are brokers. They may exist."""
        brokers = len((await self._cluster.retrying(self._cluster.refresh)).nodes)
        replicas = min(REPLICAS, max(brokers, 1))
        for name, configs in CONFIGS.items():
            try:
                await Admin(self._cluster).create_topic(NewTopic(name, 1, replicas, configs=configs))
            except KafkaError as error:
                if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise

    async def close(self) -> None:
        await self._producer.close()

    async def history(self, since_ms: int = 0, limit: int = HISTORY_MAX) -> list[dict[str, Any]]:
        """The newest changes, oldest first."""
        found = []
        for value in await self._newest(HISTORY_TOPIC, limit):
            try:
                change = json.loads(value or b"null")
            except ValueError:
                continue
            if isinstance(change, dict) and change.get("time_ms", 0) >= since_ms:
                found.append(change)
        return found[-limit:]

    async def _newest(self, topic: str, count: int) -> list[bytes | None]:
        """The values of the newest records of a topic's only partition."""
        place = TopicPartition(topic, 0)
        admin = Admin(self._cluster)
        found = []
        for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST):
            each = (await admin.list_offsets({place: spec}))[place]
            if not isinstance(each, FoundOffset):
                raise each
            found.append(each.offset)
        start, end = found
        consumer = Consumer(self._cluster, ConsumerSettings(on_out_of_range=OnOutOfRange.EARLIEST))
        consumer.assign({place: max(start, end - count)})
        values: list[bytes | None] = []
        try:
            while consumer.positions[place] < end:
                values += [each.value for each in await consumer.poll(POLL_MS)]
        finally:
            await consumer.close()
        return values

    async def record_changes(
        self, changes: Iterable[Alert], now_ms: int, host: str, known: Collection[str]
    ) -> None:
        """Append changes to the history, and bring the state up to date. Raises what was refused. `known`:
        fingerprints that some target takes for firing; the end of these stays until `forget_alerts`."""
        history, state = [], []
        for alert in changes:
            body = {**alert.to_json(), "time_ms": now_ms, "host": host}
            history.append(NewRecord(0, alert.fingerprint.encode(), json.dumps(body).encode()))
            is_kept = alert.state is State.FIRING or alert.fingerprint in known
            value = json.dumps(alert.to_json()).encode() if is_kept else None
            state.append(NewRecord(0, (ALERT + alert.fingerprint).encode(), value))
        await self._send(STATE_TOPIC, state)
        await self._send(HISTORY_TOPIC, history)

    async def record_told(
        self, target: str, fingerprints: Iterable[str], underway: Iterable[str], now_ms: int
    ) -> None:
        """Store what a target takes for firing, and what a message that is being sent tells it."""
        body = {"fingerprints": sorted(fingerprints), "underway": sorted(underway), "time_ms": now_ms}
        await self._send(STATE_TOPIC, [NewRecord(0, (TOLD + target).encode(), json.dumps(body).encode())])

    async def forget_alerts(self, fingerprints: Iterable[str]) -> None:
        await self._send(STATE_TOPIC, [NewRecord(0, (ALERT + each).encode(), None) for each in fingerprints])

    async def record_silence(self, silence: Silence) -> None:
        value = json.dumps(silence.to_json()).encode()
        await self._send(STATE_TOPIC, [NewRecord(0, (SILENCE + silence.id).encode(), value)])

    async def forget_silences(self, ids: Iterable[str]) -> None:
        await self._send(STATE_TOPIC, [NewRecord(0, (SILENCE + each).encode(), None) for each in ids])

    async def _send(self, topic: str, records: list[NewRecord]) -> None:
        if not records:
            return
        for result in await self._producer.send_all(topic, records):
            if isinstance(result, KafkaError):
                raise result
