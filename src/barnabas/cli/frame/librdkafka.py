"""librdkafka (the package confluent-kafka, if installed) as the client of tools that need speed.

In: settings under Kafka's names. Out: settings under librdkafka's names, and errors as one line.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from barnabas.cli.frame.connecting import resolved
from barnabas.cli.frame.librdkafka_security import translated
from barnabas.cli.frame.parsing import ToolError

SECURITY = ("security.", "sasl.", "ssl.", "config.providers")  # `translated` handles these
NOT_IN_LIBRDKAFKA = {
    "key.serializer",
    "value.serializer",
    "key.deserializer",
    "value.deserializer",
    "max.block.ms",
    "default.api.timeout.ms",
    "auto.offset.reset",
    "fetch.max.wait.ms",
}
LIGHT = "barnabas (install confluent-kafka for a faster one)"


def is_installed() -> bool:
    return find_spec("confluent_kafka") is not None


def engine_name() -> str:
    if not is_installed():
        return LIGHT
    import confluent_kafka

    return f"librdkafka {confluent_kafka.libversion()[0]}"


def settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Translate Kafka's settings to librdkafka's names, without those that librdkafka does not have."""
    known = resolved(properties)
    found: dict[str, Any] = {**translated(known)}
    for name, value in known.items():
        if name == "buffer.memory":
            found["queue.buffering.max.kbytes"] = max(1, int(value) // 1024)
        elif name == "max.request.size":
            found["message.max.bytes"] = value
        elif name not in NOT_IN_LIBRDKAFKA and not name.startswith(SECURITY):
            found[name] = value
    return found


def make(kind: str, configuration: dict[str, Any]) -> Any:
    """A `Producer` or `Consumer` of confluent_kafka."""
    import confluent_kafka

    try:
        return getattr(confluent_kafka, kind)(configuration)
    except confluent_kafka.KafkaException as error:
        raise ToolError(f"librdkafka refuses the settings: {error.args[0].str()}") from None
