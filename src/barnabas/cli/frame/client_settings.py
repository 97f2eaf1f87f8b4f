"""Producer and consumer settings of the tools: translates Kafka's names to the fields of our client.

In: name=value pairs. Out: settings of our own producer and consumer. A wrong value raises with Kafka's
message. `PRODUCER_NAMES` and `CONSUMER_NAMES` are the names that have an effect; tools note all others.
"""

from collections.abc import Collection, Mapping
from typing import TypeVar

from barnabas.cli.frame.connecting import whole_number
from barnabas.cli.frame.parsing import ToolError
from barnabas.client.consumer import ConsumerSettings, OnOutOfRange
from barnabas.client.core.share_session import AcquireMode, ShareLimits
from barnabas.client.producer import ProducerSettings
from barnabas.records.compression import Compression

T = TypeVar("T")

ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}
CODECS = {codec.name.lower(): codec for codec in Compression}
RESETS = {"earliest": OnOutOfRange.EARLIEST, "latest": OnOutOfRange.LATEST, "none": OnOutOfRange.FAIL}
ISOLATION = {"read_uncommitted": False, "read_committed": True}
ACQUIRE_MODES = {mode.name.lower(): mode for mode in AcquireMode}
BOOLEANS = {"true": True, "false": False}

CLIENT_NAMES = {
    "bootstrap.servers",
    "client.id",
    "request.timeout.ms",
    "default.api.timeout.ms",
    "config.providers",
    "security.protocol",
}
SECURITY_PREFIXES = ("sasl.", "ssl.", "config.providers.")  # settings of `client_security` and of references
PRODUCER_NAMES = CLIENT_NAMES | {
    "acks",
    "batch.size",
    "buffer.memory",
    "compression.type",
    "delivery.timeout.ms",
    "enable.idempotence",
    "linger.ms",
    "max.block.ms",
    "max.request.size",
    "retries",
    "retry.backoff.ms",
}
CONSUMER_NAMES = CLIENT_NAMES | {
    "auto.offset.reset",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "group.id",
    "isolation.level",
    "max.partition.fetch.bytes",
}

SHARE_NAMES = CLIENT_NAMES | {
    "client.rack",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "group.id",
    "max.poll.records",
    "share.acknowledgement.mode",
    "share.acquire.mode",
}


def without_effect(properties: Mapping[str, str], known: Collection[str]) -> list[str]:
    """The names of settings that the client does not know."""
    return sorted(name for name in properties if name not in known and not name.startswith(SECURITY_PREFIXES))


def producer_settings(properties: Mapping[str, str]) -> ProducerSettings:
    default = ProducerSettings()
    acks = choice(properties, "acks", ACKS, "all")
    return ProducerSettings(
        acks=acks,
        linger_ms=whole_number(properties, "linger.ms", 5),
        batch_size_bytes=whole_number(properties, "batch.size", default.batch_size_bytes),
        compression=choice(properties, "compression.type", CODECS, "none"),
        idempotence=choice(properties, "enable.idempotence", BOOLEANS, "true" if acks == -1 else "false"),
        request_timeout_ms=whole_number(properties, "request.timeout.ms", default.request_timeout_ms),
        delivery_timeout_ms=whole_number(properties, "delivery.timeout.ms", default.delivery_timeout_ms),
        retries_max=whole_number(properties, "retries", default.retries_max),
        retry_backoff_ms=whole_number(properties, "retry.backoff.ms", int(default.retry_backoff_ms)),
        request_size_bytes_max=whole_number(properties, "max.request.size", default.request_size_bytes_max),
        buffer_bytes_max=whole_number(properties, "buffer.memory", default.buffer_bytes_max),
        block_ms_max=whole_number(properties, "max.block.ms", default.block_ms_max),
    )


def consumer_settings(properties: Mapping[str, str]) -> ConsumerSettings:
    default = ConsumerSettings()
    return ConsumerSettings(
        fetch_wait_ms_max=whole_number(properties, "fetch.max.wait.ms", default.fetch_wait_ms_max),
        fetch_bytes_min=whole_number(properties, "fetch.min.bytes", default.fetch_bytes_min),
        fetch_bytes_max=whole_number(properties, "fetch.max.bytes", default.fetch_bytes_max),
        partition_fetch_bytes_max=whole_number(
            properties, "max.partition.fetch.bytes", default.partition_fetch_bytes_max
        ),
        read_committed=choice(properties, "isolation.level", ISOLATION, "read_uncommitted"),
        on_out_of_range=choice(properties, "auto.offset.reset", RESETS, "latest"),
    )


def share_limits(properties: Mapping[str, str]) -> ShareLimits:
    default = ShareLimits()
    return ShareLimits(
        wait_ms_max=whole_number(properties, "fetch.max.wait.ms", default.wait_ms_max),
        bytes_min=whole_number(properties, "fetch.min.bytes", default.bytes_min),
        bytes_max=whole_number(properties, "fetch.max.bytes", default.bytes_max),
        records_max=whole_number(properties, "max.poll.records", default.records_max),
        acquire_mode=choice(properties, "share.acquire.mode", ACQUIRE_MODES, "batch_optimized"),
    )


def choice(properties: Mapping[str, str], name: str, values: Mapping[str, T], default: str) -> T:
    text = properties.get(name, default).strip()
    found = values.get(text.lower())
    if found is None:
        raise ToolError(
            f"Invalid value {text} for configuration {name}: String must be one of: {', '.join(values)}"
        )
    return found
