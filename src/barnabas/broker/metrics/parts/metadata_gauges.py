"""Metrics of the metadata on a node: how far it is applied, features, snapshots.

In: the metadata log and image. Out: sources registered with the metrics, under Kafka's names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.metadata.versions import supported_features

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.broker.broker import Broker
    from barnabas.metrics import Tags

BROKER = "kafka.server", "broker-metadata-metrics"
LOADER = "kafka.server", "MetadataLoader"
EMITTER = "kafka.server", "SnapshotEmitter"
LISTENER = "kafka.server", "BrokerMetadataListener"
CONTROLLER = "kafka.controller", "KafkaController"


def register(broker: Broker) -> None:
    metrics, log = broker.metrics, broker.quorum.log
    stats = log.stats

    def lag_ms() -> int:
        timestamp_ms = log.image.provenance.timestamp_ms
        if timestamp_ms < 0 or log.image.provenance.offset + 1 >= log.high_watermark:
            return 0  # everything that is committed is applied
        return max(broker.clock.now_ms() - timestamp_ms, 0)

    for domain, kind, names in (
        (
            *BROKER,
            ("last-applied-record-offset", "last-applied-record-timestamp", "last-applied-record-lag-ms"),
        ),
        (
            *CONTROLLER,
            ("LastAppliedRecordOffset", "LastAppliedRecordTimestamp", "LastAppliedRecordLagMs"),
        ),
    ):
        for name, help, value in zip(
            names,
            (
                "The offset of the last metadata record that this node has applied.",
                "Its timestamp.",
                "How old it is while newer ones wait; 0 where all committed ones are applied.",
            ),
            (lambda: log.image.provenance.offset, lambda: log.image.provenance.timestamp_ms, lag_ms),
            strict=True,
        ):
            if kind != CONTROLLER[1] or broker.own_controller is not None:
                metrics.gauge(domain, kind, name, help, value)
    metrics.gauge(
        *BROKER,
        "metadata-apply-error-count",
        "Times that a part of this node failed to follow a change of the metadata.",
        lambda: log.listener_errors,
    )
    metrics.gauge(
        *BROKER,
        "metadata-load-error-count",
        "Always 0: a node whose metadata cannot be loaded stops.",
        lambda: 0,
    )
    metrics.gauge(*BROKER, "ignored-static-voters", IGNORED, lambda: ignored_static_voters(broker))
    metrics.gauge(
        *LOADER,
        "CurrentMetadataVersion",
        "The level of metadata.version.",
        lambda: log.image.features.metadata_level,
    )
    metrics.gauge(
        *LOADER,
        "CurrentControllerId",
        "The active controller; -1 while none is known.",
        lambda: broker.controller_id,
    )
    metrics.gauge(
        *LOADER, "HandleLoadSnapshotCount", "Snapshots that this node loaded.", lambda: stats.snapshots_loaded
    )
    metrics.gauges(
        *LOADER, "FinalizedLevel", "The level of each feature of the cluster.", lambda: features(broker)
    )
    metrics.gauge(
        *EMITTER,
        "LatestSnapshotGeneratedBytes",
        "The size of the latest snapshot of the metadata.",
        lambda: log.latest_snapshot_bytes,
    )
    metrics.gauge(
        *EMITTER,
        "LatestSnapshotGeneratedAgeMs",
        "Its age; before the first one, the time since the start.",
        lambda: broker.clock.now_ms() - log.latest_snapshot_ms,
    )
    for name, help, histogram in (
        ("MetadataBatchProcessingTimeUs", "Microseconds to apply a change of the metadata.", stats.batch_us),
        ("MetadataBatchSizes", "Records of a change of the metadata.", stats.batch_records),
    ):
        metrics.adopt(histogram)
        metrics.show_histograms(*LISTENER, name, help, lambda histogram=histogram: [((), histogram)])  # type: ignore[misc]

    for place, word in enumerate(("minimum", "maximum")):
        metrics.gauges(
            "kafka.server",
            "node-metrics",
            f"{word}-supported-level",
            f"The {word} level of a feature that this node supports.",
            lambda place=place: [  # type: ignore[misc]
                ((("feature-name", shown.replace(".", "-")),), levels[place])
                for shown, levels in sorted(supported_features().items())
            ],
        )


IGNORED = "1 where controller.quorum.voters is set and the log names the voters."


def ignored_static_voters(broker: Broker) -> int:
    return int(bool(broker.settings.voters) and broker.quorum.kraft_version > 0)


def features(broker: Broker) -> Iterator[tuple[Tags, int]]:
    for name, level in sorted(broker.image.features.finalized.items()):
        first, *rest = name.split(".")
        shown = first + "".join(part.capitalize() for part in rest)
        yield (("featureName", shown),), level
