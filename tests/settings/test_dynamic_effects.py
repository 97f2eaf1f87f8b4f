"""Every setting that can be changed while running does something, or is named here as one that cannot yet."""

from __future__ import annotations

from pathlib import Path

import barnabas
from barnabas.settings.definitions import BROKER_ROWS
from barnabas.settings.synonyms import TOPIC_TO_BROKER
from barnabas.settings.tables.row import READ_ONLY

SOURCES = Path(barnabas.__file__).parent
# Read by one who waits for what is not there: followers, TLS, SASL, tiered storage, share groups.
WAITING = (
    "follower.", "leader.", "principal.builder.class", "remote.", "sasl.", "ssl.",
    "group.share.", "group.streams.", "share.coordinator.",
)  # fmt: skip
# Kafka's threads and buffers: one event loop needs none of them, and takes any value that Kafka takes.
OF_THE_JVM = (
    "background.threads", "group.coordinator.cached.buffer.max.bytes", "num.io.threads",
    "num.network.threads", "num.recovery.threads.per.data.dir",
)  # fmt: skip
AT_START = ("config.providers", "listener.security.protocol.map")
RULES = ("settings/tables", "settings/synonyms.py", "settings/broker_rules.py", "settings/checks.py")


def sources() -> str:
    found = []
    for path in SOURCES.rglob("*.py"):
        where = path.relative_to(SOURCES).as_posix()
        if not where.startswith(RULES) and not where.startswith(("protocol/", "cli/")):
            found.append(path.read_text())
    return "\n".join(found)


def changeable() -> list[str]:
    return [name for name, row in BROKER_ROWS.items() if row[5] != READ_ONLY]


def test_every_dynamic_setting_is_used() -> None:
    everything = sources()
    unread = [
        name
        for name in changeable()
        if f'"{name}"' not in everything
        and name not in TOPIC_TO_BROKER.values()
        and not name.startswith(WAITING + OF_THE_JVM + AT_START)
    ]
    assert unread == []


def test_settings_of_the_jvm_are_not_used() -> None:
    everything = sources()
    read = [name for name in changeable() if name.startswith(OF_THE_JVM) and f'"{name}"' in everything]
    assert read == []
