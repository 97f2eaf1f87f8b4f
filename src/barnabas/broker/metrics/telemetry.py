"""Metrics of clients (KIP-714): which clients push which metrics how often, and which receivers get them.

In: subscriptions from the metadata, requests of clients, reporters of the node (`metric.reporters`) that have
`export_metrics(client, payload)` and optionally `attach(metrics)`; a payload is OTLP MetricsData. Out:
responses, and payloads for these receivers: on the loop, or in a thread if the receiver has
`may_run_in_thread`.
Without a receiver the APIs are not announced, and clients push nothing. Does not know: what is in a payload.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.metadata.configs import ResourceType
from barnabas.protocol import NULL_UUID, ErrorCode, KafkaError
from barnabas.protocol import uuid as uuids
from barnabas.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from barnabas.settings.client_metrics import Subscription, subscription
from barnabas.settings.errors import SettingsError

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.broker import Broker
    from barnabas.broker.metrics.telemetry_stats import TelemetryStats
    from barnabas.metadata.image import MetadataImage
    from barnabas.protocol.messages.push_telemetry import PushTelemetryRequest

log = logging.getLogger("barnabas.telemetry")
ALL_METRICS = "*"
INTERVAL_MS = 300_000  # of clients without a subscription
INSTANCES_MAX = 16_384
UNPACKED_TIMES_MAX = 10  # a decompressed payload may be this many times telemetry.max.bytes
COMPRESSIONS = (4, 3, 1, 2)  # zstd, lz4, gzip, snappy, in the order of preference
RESERVED_IDS = (NULL_UUID, NULL_UUID[:-1] + b"\x01")


class Receiver(Protocol):
    def export_metrics(self, client: TelemetryClient, payload: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class TelemetryClient:
    """The client that pushed metrics."""

    instance_id: str
    client_id: str
    software_name: str
    software_version: str
    host: str
    push_interval_ms: int = INTERVAL_MS
    is_terminating: bool = False  # these are its last metrics


@dataclass(slots=True)
class ClientInstance:
    """A client: the metrics that it should push, and when it last did."""

    version: int
    subscription_id: int
    metrics: list[str]
    interval_ms: int
    subscribed_ms: float = float("-inf")
    pushed_ms: float = float("-inf")
    is_terminating: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)


class Telemetry:
    def __init__(self, broker: Broker, random_bytes: Callable[[int], bytes], stats: TelemetryStats) -> None:
        self._broker = broker
        self._stats = stats
        self._random_bytes = random_bytes
        self._receivers: list[Receiver] = []
        self._subscriptions: dict[str, Subscription] = {}
        self._version = 0  # of the subscriptions: when it changes, clients must get theirs again
        self._instances: dict[bytes, ClientInstance] = {}
        self.load_reporters()
        self.apply_subscriptions(broker.image)

    # -- configuration ----------------------------------------------------------------------

    @property
    def has_receivers(self) -> bool:
        return bool(self._receivers)

    @property
    def instance_count(self) -> int:
        """Clients that have asked for a subscription or pushed."""
        return len(self._instances)

    def load_reporters(self) -> None:
        self._receivers = list(self._broker.reporting.receivers)
        for receiver in self._receivers:
            attach = getattr(receiver, "attach", None)
            if attach is not None:
                attach(self._broker.metrics)

    def apply_subscriptions(self, image: MetadataImage) -> None:
        """Apply the subscriptions of the metadata."""
        found = {}
        for resource, values in image.configs.by_resource.items():
            if resource.type == ResourceType.CLIENT_METRICS:
                try:
                    found[resource.name] = subscription(resource.name, values)
                except (SettingsError, KeyError) as error:
                    log.warning("the subscription %s is invalid and ignored: %s", resource.name, error)
        self._subscriptions = found
        self._version += 1

    # -- requests ---------------------------------------------------------------

    def subscribe(self, instance_id: bytes, context: RequestContext) -> GetTelemetrySubscriptionsResponse:
        if instance_id == NULL_UUID:
            instance_id = self._random_bytes(16)
        instance, now_ms = self._instance(instance_id, context), self._now_ms()
        if now_ms - max(instance.subscribed_ms, instance.pushed_ms) < instance.interval_ms:
            self._stats.throttled += 1
            raise too_early(instance_id)
        instance.subscribed_ms = now_ms
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=instance.subscription_id,
            accepted_compression_types=list(COMPRESSIONS),
            push_interval_ms=instance.interval_ms,
            telemetry_max_bytes=self._broker.settings["telemetry.max.bytes"],
            delta_temporality=True,
            requested_metrics=instance.metrics,
        )

    async def push(self, request: PushTelemetryRequest, context: RequestContext) -> None:
        """Give the metrics to the receivers. A thread decompresses them: they may be ten times
        `telemetry.max.bytes`."""
        instance_id = request.client_instance_id
        if instance_id in RESERVED_IDS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the client has no instance id")
        instance = self._instance(instance_id, context)
        try:
            self._check_push(instance_id, instance, request)
        finally:
            instance.is_terminating = instance.is_terminating or request.terminating
        if request.metrics:
            await self._export(instance_id, instance, request, context)

    def _check_push(
        self, instance_id: bytes, instance: ClientInstance, request: PushTelemetryRequest
    ) -> None:
        now_ms = self._now_ms()
        if instance.is_terminating:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the client has sent its last metrics already")
        is_early = instance.subscribed_ms <= instance.pushed_ms and (
            now_ms - instance.pushed_ms < instance.interval_ms
        )
        if is_early and not request.terminating:
            self._stats.throttled += 1
            raise too_early(instance_id)
        instance.pushed_ms = now_ms
        if request.subscription_id != instance.subscription_id:
            self._stats.unknown_subscriptions += 1
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, "the subscription has changed: get it again")
        if request.compression_type not in (0, *COMPRESSIONS):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression {request.compression_type} is unknown"
            )
        if len(request.metrics) > self._broker.settings["telemetry.max.bytes"]:
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE, "more than telemetry.max.bytes")

    async def _export(
        self,
        instance_id: bytes,
        instance: ClientInstance,
        request: PushTelemetryRequest,
        context: RequestContext,
    ) -> None:
        from barnabas.records.compression import Compression, decompress

        limit = self._broker.settings["telemetry.max.bytes"] * UNPACKED_TIMES_MAX
        client = TelemetryClient(
            instance_id=uuids.to_text(instance_id),
            client_id=context.client_id or "",
            software_name=context.software_name,
            software_version=context.software_version,
            host=context.host,
            push_interval_ms=instance.interval_ms,
            is_terminating=request.terminating,
        )
        began_ns = perf_counter_ns()
        try:
            compression = Compression(request.compression_type)
            payload: Any = request.metrics
            if compression != Compression.NONE:
                threads = self._broker.threads.requests
                payload = bytes(await threads.run(decompress, compression, request.metrics, limit))
            for receiver in self._receivers:
                if getattr(receiver, "may_run_in_thread", False):
                    await self._broker.threads.requests.run(receiver.export_metrics, client, payload)
                else:
                    receiver.export_metrics(client, payload)
            self._stats.exports.observe(perf_counter_ns() - began_ns)
        except Exception as error:  # receivers are code of other packages
            self._stats.errors += 1
            log.warning("a receiver failed on metrics of the client %s: %s", client.client_id, error)
            raise KafkaError(ErrorCode.INVALID_RECORD, "a receiver could not process the metrics") from error

    def _instance(self, instance_id: bytes, context: RequestContext) -> ClientInstance:
        found = self._instances.get(instance_id)
        if found is not None and found.version == self._version:
            return found
        attributes = found.attributes if found is not None else attributes_of(instance_id, context)
        new = self._new_instance(instance_id, attributes)
        if found is not None:
            new.is_terminating = found.is_terminating
        self._instances.pop(instance_id, None)
        while len(self._instances) >= INSTANCES_MAX:
            self._instances.pop(next(iter(self._instances)))
        self._instances[instance_id] = new
        return new

    def _new_instance(self, instance_id: bytes, attributes: Mapping[str, str]) -> ClientInstance:
        matching = [each for each in self._subscriptions.values() if each.matches(attributes)]
        metrics = sorted({metric for each in matching for metric in each.metrics})
        if ALL_METRICS in metrics:
            metrics = [ALL_METRICS]
        interval_ms = min((each.interval_ms for each in matching), default=INTERVAL_MS)
        mark = zlib.crc32(f"{metrics}{interval_ms}".encode() + instance_id)
        return ClientInstance(
            version=self._version,
            subscription_id=mark - (1 << 32) if mark >= 1 << 31 else mark,
            metrics=metrics,
            interval_ms=min(interval_ms, INTERVAL_MS),
            attributes=attributes,
        )

    def _now_ms(self) -> float:
        return self._broker.loop.time() * 1000


def attributes_of(instance_id: bytes, context: RequestContext) -> dict[str, str]:
    peer: Any = context.channel.transport.get_extra_info("peername") or ("", "")
    return {
        "client_instance_id": uuids.to_text(instance_id),
        "client_id": context.client_id or "",
        "client_software_name": context.software_name,
        "client_software_version": context.software_version,
        "client_source_address": context.host,
        "client_source_port": str(peer[1]),
    }


def too_early(instance_id: bytes) -> KafkaError:
    return KafkaError(
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        f"Request from the client [{uuids.to_text(instance_id)}] arrived before the next push interval time",
    )
