"""Settings of brokers, described and changed while they run: names, sources, what is refused and how."""

from __future__ import annotations

import time
from typing import Any

from barnabas.protocol import ApiKey

from ..requests import versions
from ..talk import Talk, scenario

DESCRIBE, ALTER, REPLACE = ApiKey.DESCRIBE_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.ALTER_CONFIGS
TOPIC, BROKER = 2, 4
SET, REMOVE, APPEND, SUBTRACT = range(4)
EVERYONE, ME = "", "1"
# What a node is started with differs between two nodes.
OF_THE_NODE = ("listeners", "log.dirs", "controller.quorum.voters")
DEFAULT_ISR = {"min.insync.replicas": "1"}  # set when the cluster is formatted
WRAPPED = "Invalid value org.apache.kafka.common.config.ConfigException: "
Change = tuple[str, int, str | None]

# Settings that can be changed while running, a good value each, for all brokers and for one.
FOR_ALL = {
    "background.threads": "12",
    "compression.gzip.level": "3",
    "compression.lz4.level": "4",
    "compression.type": "lz4",
    "compression.zstd.level": "5",
    "follower.fetch.last.tiered.offset.enable": "true",
    "group.consumer.assignment.interval.ms": "500",
    "group.coordinator.cached.buffer.max.bytes": "1000000",
    "group.share.assignment.interval.ms": "500",
    "group.streams.assignment.interval.ms": "500",
    "log.cleaner.backoff.ms": "14000",
    "log.cleaner.dedupe.buffer.size": "100000000",
    "log.cleaner.delete.retention.ms": "1000",
    "log.cleaner.io.buffer.load.factor": "0.8",
    "log.cleaner.io.buffer.size": "600000",
    "log.cleaner.io.max.bytes.per.second": "1000000",
    "log.cleaner.max.compaction.lag.ms": "1000000000",
    "log.cleaner.min.cleanable.ratio": "0.4",
    "log.cleaner.min.compaction.lag.ms": "5",
    "log.cleaner.threads": "2",
    "log.cleanup.policy": "delete,compact",
    "log.flush.interval.messages": "1000000",
    "log.flush.interval.ms": "100000",
    "log.index.interval.bytes": "8192",
    "log.index.size.max.bytes": "1000000",
    "log.local.retention.bytes": "-2",
    "log.local.retention.ms": "-2",
    "log.message.timestamp.after.max.ms": "7200000",
    "log.message.timestamp.before.max.ms": "9000000000000000000",
    "log.message.timestamp.type": "LogAppendTime",
    "log.preallocate": "false",
    "log.retention.bytes": "100000000000",
    "log.retention.ms": "1000000000000",
    "log.roll.jitter.ms": "5",
    "log.roll.ms": "500000000",
    "log.segment.bytes": "500000000",
    "log.segment.delete.delay.ms": "50000",
    "max.connection.creation.rate": "100000",
    "max.connections": "100000",
    "max.connections.per.ip": "100000",
    "max.connections.per.ip.overrides": "127.0.0.5:3",
    "message.max.bytes": "2000000",
    "num.io.threads": "9",
    "num.network.threads": "4",
    "num.recovery.threads.per.data.dir": "3",
    "num.replica.fetchers": "2",
    "producer.id.expiration.ms": "80000000",
    "remote.fetch.max.wait.ms": "400",
    "remote.list.offsets.request.timeout.ms": "20000",
    "remote.log.index.file.cache.total.size.bytes": "1000000000",
    "remote.log.manager.copier.thread.pool.size": "11",
    "remote.log.manager.copy.max.bytes.per.second": "1000000000",
    "remote.log.manager.expiration.thread.pool.size": "11",
    "remote.log.manager.fetch.max.bytes.per.second": "1000000000",
    "remote.log.manager.follower.thread.pool.size": "3",
    "remote.log.reader.threads": "11",
    "share.coordinator.cached.buffer.max.bytes": "1000000",
    "transaction.partition.verification.enable": "false",
    "unclean.leader.election.enable": "true",
    "leader.replication.throttled.rate": "1000000",
    "follower.replication.throttled.rate": "1000000",
    "replica.alter.log.dirs.io.max.bytes.per.second": "1000000",
}
# At the borders: too little, too much, not of the type.
WRONG = {
    "background.threads": ("0", "500", "many"),
    "compression.gzip.level": ("0", "10"),
    "compression.lz4.level": ("0", "18"),
    "compression.type": ("none", "LZ4", ""),
    "compression.zstd.level": ("23",),
    "follower.fetch.last.tiered.offset.enable": ("yes",),
    "group.consumer.assignment.interval.ms": ("-1", "20000"),
    "group.coordinator.cached.buffer.max.bytes": ("1",),
    "group.share.assignment.interval.ms": ("-1", "20000"),
    "group.streams.assignment.interval.ms": ("-1", "20000"),
    "log.cleaner.backoff.ms": ("-1",),
    "log.cleaner.dedupe.buffer.size": ("1000000", "x"),
    "log.cleaner.delete.retention.ms": ("-1",),
    "log.cleaner.io.buffer.load.factor": ("0.9.9",),
    "log.cleaner.io.buffer.size": ("-1", "1"),
    "log.cleaner.io.max.bytes.per.second": ("fast",),
    "log.cleaner.max.compaction.lag.ms": ("0",),
    "log.cleaner.min.cleanable.ratio": ("1.1", "-0.1"),
    "log.cleaner.min.compaction.lag.ms": ("-1",),
    "log.cleaner.threads": ("0", "3", "x"),
    "log.cleanup.policy": ("keep", ""),
    "log.flush.interval.messages": ("0",),
    "log.flush.interval.ms": ("x",),
    "log.index.interval.bytes": ("-1",),
    "log.index.size.max.bytes": ("3",),
    "log.local.retention.bytes": ("-3", "5"),
    "log.local.retention.ms": ("-3", "1000000000000"),
    "log.message.timestamp.type": ("createtime",),
    "log.preallocate": ("1",),
    "log.retention.ms": ("x", "-2", "0"),
    "log.roll.jitter.ms": ("-1",),
    "log.roll.ms": ("0",),
    "log.segment.bytes": ("1000", "9999999999"),
    "log.segment.delete.delay.ms": ("-1",),
    "max.connection.creation.rate": ("-1",),
    "max.connections": ("-1",),
    "max.connections.per.ip": ("-1", "0"),
    "max.connections.per.ip.overrides": ("127.0.0.5", "127.0.0.5:x", "not an address:3", "127.0.0.5:-1"),
    "message.max.bytes": ("-1",),
    "metric.reporters": ("no.such.Class",),
    "min.insync.replicas": ("0", "x"),
    "num.io.threads": ("0", "3", "17"),
    "num.network.threads": ("0", "7", "1"),
    "num.recovery.threads.per.data.dir": ("0", "5"),
    "num.replica.fetchers": ("0", "3"),
    "producer.id.expiration.ms": ("0", "-5"),
    "remote.log.index.file.cache.total.size.bytes": ("0",),
    "remote.log.manager.copy.max.bytes.per.second": ("0",),
    "remote.log.reader.threads": ("0", "21"),
    "share.coordinator.cached.buffer.max.bytes": ("1",),
    "transaction.partition.verification.enable": ("maybe",),
    "unclean.leader.election.enable": ("maybe",),
    "leader.replication.throttled.rate": ("-1", "x"),
    "replica.alter.log.dirs.io.max.bytes.per.second": ("-1",),
}  # fmt: skip
READ_ONLY = {
    "node.id": "2",
    "log.dirs": "/tmp/x",
    "num.partitions": "4",
    "auto.create.topics.enable": "false",
    "log.retention.hours": "5",
    "advertised.listeners": "PLAINTEXT://127.0.0.1:1",
    "inter.broker.listener.name": "PLAINTEXT",
    "connections.max.idle.ms": "1000",
    "quota.window.num": "5",
    "log.retention.check.interval.ms": "1000",
    "delegation.token.secret.key": "secret",
}
OF_ONE = {
    "ssl.keystore.location": "/tmp/x",
    "ssl.keystore.password": "secret",
    "ssl.protocol": "TLSv1.2",
    "sasl.jaas.config": "secret",
    "sasl.enabled.mechanisms": "PLAIN",
    "principal.builder.class": "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    "listeners": "PLAINTEXT://127.0.0.1:1",
    "advertised.listeners": "PLAINTEXT://127.0.0.1:1",
    "cordoned.log.dirs": "*",
    "listener.name.plaintext.ssl.keystore.location": "/tmp/x",
    "listener.name.plaintext.ssl.keystore.password": "secret",
    "listener.name.plaintext.max.connections": "10000",
    "listener.name.plaintext.max.connection.creation.rate": "10000",
    "listener.name.plaintext.num.network.threads": "4",
    "listener.name.nowhere.max.connections": "5",
    "listener.name.plaintext.plain.sasl.jaas.config": "secret",
    "listener.name.plaintext.no.such": "5",
    "no.such.name": "5",
    "log.retention.minutes": "5",
    "": "5",
}


def body(name: str, *changes: Change) -> dict[str, Any]:
    configs = [{"name": key, "config_operation": kind, "value": value} for key, kind, value in changes]
    return {"resource_type": BROKER, "resource_name": name, "configs": configs}


def alter(talk: Talk, label: str, name: str, *changes: Change, validate_only: bool = False) -> None:
    """Changes, and notes what is said about it, word by word."""
    answer = talk.silently(ALTER, 1, resources=[body(name, *changes)], validate_only=validate_only)
    found = answer["responses"][0]
    said = {"error_code": found["error_code"], "said": words(found["error_message"])}
    talk.note(f"{label} on {name or 'all'}", said)


def words(said: str | None) -> str | None:
    """What is said, without names of classes around it."""
    for extra in (WRAPPED, " for configuration Invalid dynamic configuration", "requirement failed: "):
        said = said and said.replace(extra, "")
    return said


def described(talk: Talk, name: str, keys: list[str] | None = None, **flags: bool) -> dict[str, Any]:
    asked = {"resource_type": BROKER, "resource_name": name, "configuration_keys": keys}
    return talk.silently(DESCRIBE, 4, resources=[asked], **flags)["results"][0]


def shows(talk: Talk, name: str, wanted: dict[str, str | None]) -> None:
    """Waits until the broker shows these values (None: nothing), then notes how."""
    deadline = time.monotonic() + 20
    while True:
        answer = described(talk, name, sorted(wanted), include_synonyms=True)
        found = {each["name"]: each["value"] for each in answer["configs"]}
        if {key: found.get(key) for key in wanted} == wanted:
            break
        assert time.monotonic() < deadline, answer
    talk.note(f"then {name or 'all'}", answer)


def forgets(talk: Talk, name: str, *keys: str) -> None:
    talk.silently(ALTER, 1, resources=[body(name, *((key, REMOVE, None) for key in keys))])


@scenario
def everything_is_described(talk: Talk) -> None:
    """All settings of a broker, name by name."""
    for synonyms in (False, True):
        answer = described(talk, ME, include_synonyms=synonyms)
        for each in sorted(answer["configs"], key=lambda found: found["name"]):
            if each["name"].startswith(("barnabas.", "confluent.")):
                continue
            if each["name"] in OF_THE_NODE:
                each["value"] = "<of the node>"
                for synonym in each.get("synonyms") or ():
                    synonym["value"] = f"<{synonym['source']}>"
            talk.note(f"{each['name']}, synonyms {synonyms}", each)
    documented = described(talk, ME, include_documentation=True)["configs"]
    missing = [each["name"] for each in documented if not each["documentation"]]
    talk.note("without documentation", sorted(missing))


@scenario
def every_version_describes(talk: Talk) -> None:
    for version in versions(DESCRIBE):
        some = {
            "resource_type": BROKER,
            "resource_name": ME,
            "configuration_keys": ["log.retention.ms", "log.segment.bytes", "no.such", "ssl.key.password"],
        }
        for flags in ({}, {"include_synonyms": True, "include_documentation": True}):
            talk.ask(f"some, {sorted(flags)}", DESCRIBE, version, resources=[some], **flags)
        for name in ("", "2", "-1", "x", " 1", "01"):
            asked = {
                "resource_type": BROKER,
                "resource_name": name,
                "configuration_keys": ["log.segment.bytes"],
            }
            talk.ask(f"broker {name!r}", DESCRIBE, version, resources=[asked])


@scenario
def good_values_for_all(talk: Talk) -> None:
    for name, value in FOR_ALL.items():
        alter(talk, f"{name}={value}", EVERYONE, (name, SET, value), validate_only=True)
        alter(talk, f"{name}={value}", ME, (name, SET, value), validate_only=True)
    shows(talk, EVERYONE, DEFAULT_ISR | dict.fromkeys(FOR_ALL))


@scenario
def wrong_values(talk: Talk) -> None:
    for name, values in WRONG.items():
        for value in values:
            alter(talk, f"{name}={value!r}", EVERYONE, (name, SET, value), validate_only=True)
            if name != "min.insync.replicas":
                alter(talk, f"{name}={value!r}", ME, (name, SET, value), validate_only=True)


@scenario
def names_that_cannot_be_changed(talk: Talk) -> None:
    for name, value in READ_ONLY.items():
        for where in (EVERYONE, ME):
            alter(talk, f"{name}={value}", where, (name, SET, value), validate_only=True)
            alter(talk, f"without {name}", where, (name, REMOVE, None), validate_only=True)


@scenario
def names_of_one_broker(talk: Talk) -> None:
    for name, value in OF_ONE.items():
        alter(talk, f"{name}={value}", EVERYONE, (name, SET, value), validate_only=True)
        if name not in ("listeners", "cordoned.log.dirs"):
            alter(talk, f"{name}={value}", ME, (name, SET, value), validate_only=True)
    for where in ("2", "-1", "x", "1 ", "01"):
        change = ("log.segment.bytes", SET, "2000000")
        alter(talk, "log.segment.bytes=2000000", where, change, validate_only=True)


@scenario
def values_that_do_not_fit_together(talk: Talk) -> None:
    alter(
        talk, "local over total", EVERYONE,
        ("log.retention.ms", SET, "1000"), ("log.local.retention.ms", SET, "2000"), validate_only=True,
    )  # fmt: skip
    alter(
        talk, "local over total bytes", EVERYONE,
        ("log.retention.bytes", SET, "1000"), ("log.local.retention.bytes", SET, "2000"), validate_only=True,
    )  # fmt: skip
    alter(
        talk, "lags", EVERYONE,
        ("log.cleaner.min.compaction.lag.ms", SET, "2000"),
        ("log.cleaner.max.compaction.lag.ms", SET, "1000"), validate_only=True,
    )  # fmt: skip
    good_and_bad: tuple[Change, ...] = (
        ("log.segment.bytes", SET, "2000000"),
        ("log.roll.ms", SET, "never"),
    )
    alter(talk, "one good, one bad", EVERYONE, *good_and_bad)
    alter(talk, "the same name twice", EVERYONE, good_and_bad[0], good_and_bad[0])
    alter(talk, "null", EVERYONE, ("log.segment.bytes", SET, None))
    alter(talk, "append to a number", EVERYONE, ("log.segment.bytes", APPEND, "5"))
    alter(talk, "append to nothing known", EVERYONE, ("no.such.name", APPEND, "5"))
    alter(talk, "eligible replicas by one broker", ME, ("min.insync.replicas", SET, "1"))
    alter(talk, "eligible replicas without default", EVERYONE, ("min.insync.replicas", REMOVE, None))
    both = [body(EVERYONE, ("log.roll.ms", SET, "77777777")), body(ME, ("node.id", SET, "7"))]
    talk.ask("one resource good, one bad", ALTER, 1, resources=both)
    shows(talk, EVERYONE, DEFAULT_ISR | {"log.segment.bytes": None, "log.roll.ms": "77777777"})
    forgets(talk, EVERYONE, "log.roll.ms")
    shows(talk, EVERYONE, DEFAULT_ISR | {"log.roll.ms": None})


@scenario
def values_fall_back(talk: Talk) -> None:
    """The broker's own wins over that of all brokers, which wins over the file and the default."""
    name = "log.cleaner.backoff.ms"
    shows(talk, ME, {name: "15000"})
    alter(talk, "for all", EVERYONE, (name, SET, "16000"))
    shows(talk, ME, {name: "16000"})
    alter(talk, "for one", ME, (name, SET, "17000"))
    shows(talk, ME, {name: "17000"})
    alter(talk, "for all again", EVERYONE, (name, SET, "18000"))
    shows(talk, EVERYONE, {name: "18000"})
    shows(talk, ME, {name: "17000"})
    forgets(talk, ME, name)
    shows(talk, ME, {name: "18000"})
    forgets(talk, EVERYONE, name)
    shows(talk, ME, {name: "15000"})


@scenario
def lists_grow_and_shrink(talk: Talk) -> None:
    name = "log.cleanup.policy"
    alter(talk, "append", EVERYONE, (name, APPEND, "compact"))
    shows(talk, ME, {name: "delete,compact"})
    alter(talk, "append what is there", EVERYONE, (name, APPEND, "compact,delete"))
    shows(talk, ME, {name: "delete,compact"})
    alter(talk, "subtract", EVERYONE, (name, SUBTRACT, "delete"))
    shows(talk, ME, {name: "compact"})
    alter(talk, "append what is none", EVERYONE, (name, APPEND, "keep"))
    forgets(talk, EVERYONE, name)
    shows(talk, ME, {name: "delete"})


@scenario
def topics_follow_their_broker(talk: Talk) -> None:
    """A topic's own value, the broker's, that of all brokers, the default."""
    topic = talk.topic()

    def shown(label: str, wanted: str) -> None:
        asked = {
            "resource_type": TOPIC,
            "resource_name": topic,
            "configuration_keys": ["max.message.bytes"],
        }
        deadline = time.monotonic() + 20
        while True:
            answer = talk.silently(DESCRIBE, 4, resources=[asked], include_synonyms=True)
            if answer["results"][0]["configs"][0]["value"] == wanted:
                break
            assert time.monotonic() < deadline, answer
        talk.note(label, answer)

    own = {"resource_type": TOPIC, "resource_name": topic, "configs": []}
    change = {"name": "max.message.bytes", "config_operation": SET, "value": "1111111"}
    shown("default", "1048588")
    alter(talk, "for all", EVERYONE, ("message.max.bytes", SET, "1200000"))
    shown("of all brokers", "1200000")
    alter(talk, "for one", ME, ("message.max.bytes", SET, "1300000"))
    shown("of the broker", "1300000")
    talk.ask("the topic's", ALTER, 1, resources=[own | {"configs": [change]}])
    shown("of the topic", "1111111")
    change = {"name": "max.message.bytes", "config_operation": REMOVE, "value": None}
    talk.ask("no more", ALTER, 1, resources=[own | {"configs": [change]}])
    shown("of the broker again", "1300000")
    forgets(talk, ME, "message.max.bytes")
    shown("of all brokers again", "1200000")
    forgets(talk, EVERYONE, "message.max.bytes")
    shown("default again", "1048588")


@scenario
def secrets_are_not_shown(talk: Talk) -> None:
    name = "listener.name.later.ssl.keystore.password"
    alter(talk, "a secret", ME, (name, SET, "s3cret"))
    deadline = time.monotonic() + 20
    while not (answer := described(talk, ME, [name], include_synonyms=True))["configs"]:
        assert time.monotonic() < deadline
    talk.note("shown", answer)
    forgets(talk, ME, name)


@scenario
def every_version_replaces(talk: Talk) -> None:
    for version in versions(REPLACE):

        def replace(label: str, name: str, values: dict[str, str | None], version: int = version) -> None:
            configs = [{"name": key, "value": value} for key, value in values.items()]
            one = {"resource_type": BROKER, "resource_name": name, "configs": configs}
            answer = talk.silently(REPLACE, version, resources=[one], validate_only=True)
            found = answer["responses"][0]
            said = {"error_code": found["error_code"], "said": words(found["error_message"])}
            talk.note(f"v{version}: {label}", said)

        replace("a good value", ME, {"log.segment.bytes": "2000000"})
        replace("nothing", ME, {})
        replace("a bad one", ME, {"log.segment.bytes": "x"})
        replace("null", ME, {"log.segment.bytes": None})
        replace("read-only", ME, {"node.id": "5"})
        replace("another broker", "2", {"log.segment.bytes": "2000000"})
        replace("all without eligible replicas", EVERYONE, {"log.segment.bytes": "2000000"})
