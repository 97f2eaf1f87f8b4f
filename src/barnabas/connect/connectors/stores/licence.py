"""Settings of Confluent's licences, which users bring along in the configurations of its connectors."""

from __future__ import annotations

NONE_NEEDED = "no licence is needed"
LICENCE: dict[str, tuple[str | None, str]] = dict.fromkeys(
    (
        "confluent.license",
        "confluent.topic",
        "confluent.topic.bootstrap.servers",
        "confluent.topic.replication.factor",
    ),
    (None, NONE_NEEDED),
)
