"""CreateTopics, DeleteTopics, CreatePartitions: what is made, removed and refused."""

from __future__ import annotations

from typing import Any

from barnabas.protocol import ApiKey

from ..requests import versions
from ..talk import Talk, scenario

CREATE, DELETE, GROW = ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS


def topic(name: str, partitions: int = 1, replicas: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "num_partitions": partitions, "replication_factor": replicas, **more}


def settings(**values: str | None) -> list[dict[str, str | None]]:
    return [{"name": name.replace("_", "."), "value": value} for name, value in values.items()]


def create(talk: Talk, label: str, version: int, *topics: dict[str, Any], **more: Any) -> None:
    answer = talk.silently(CREATE, version, topics=list(topics), timeout_ms=30_000, **more)
    for each in answer.get("topics", []):
        if each.get("topic_id", bytes(16)) != bytes(16):
            talk.learn(each["name"], each["topic_id"])
        for config in each.get("configs") or []:
            # Which settings are at their default depends on the node's own file.
            config.pop("config_source", None)
    talk.note(f"{CREATE.name} v{version}: {label}", answer)


@scenario
def every_version_creates(talk: Talk) -> None:
    for version in versions(CREATE):
        name = talk.name(f"v{version}")
        create(talk, "validate only", version, topic(name, 3), validate_only=True)
        create(talk, "three partitions", version, topic(name, 3))
        create(talk, "again", version, topic(name, 3))
        create(talk, "again, validate only", version, topic(name, 3), validate_only=True)
        with_settings = topic(name + "s", configs=settings(retention_ms="1000", cleanup_policy="compact"))
        create(talk, "settings", version, with_settings)
        talk.wait_until_served(name, 3)


@scenario
def counts_and_factors(talk: Talk) -> None:
    for version in versions(CREATE):
        for partitions, replicas in (
            (0, 1),
            (-2, 1),
            (-1, 1),
            (1, 0),
            (1, -2),
            (1, -1),
            (-1, -1),
            (1, 2),
            (1, 3),
            (0, 0),
        ):
            name = talk.name(f"v{version}.{partitions}.{replicas}")
            create(
                talk,
                f"{partitions} partitions, {replicas} replicas",
                version,
                topic(name, partitions, replicas),
            )
    create(talk, "far too many partitions", 7, topic(talk.name("huge"), 2**31 - 1))


@scenario
def names(talk: Talk) -> None:
    wrong = [
        "",
        ".",
        "..",
        "a b",
        "a/b",
        "a\u00e9",
        "a" * 249 + "b",
        "a\nb",
        "a,b",
        "a:b",
        "*",
        "a\0b",
        " a",
        "a@b",
    ]
    for name in wrong:
        create(talk, f"name {name[:20]!r} of {len(name)}", 7, topic(name))
        create(talk, f"name {name[:20]!r} of {len(name)}", 2, topic(name))
    prefix = talk.prefix.replace(".", "-")
    longest = (prefix + "x" * 249)[:249]
    create(talk, "longest name", 7, topic(longest))
    create(talk, "every kind of character", 7, topic(f"{prefix}-A_z.09"))
    create(talk, "collides with it", 7, topic(f"{prefix}-A.z_09"))
    create(talk, "collides with itself", 7, topic(f"{prefix}-one.two"), topic(f"{prefix}-one_two"))
    create(talk, "starts with underscores", 7, topic("__" + prefix))
    create(talk, "an internal name", 7, topic("__cluster_metadata"))


@scenario
def several_at_once(talk: Talk) -> None:
    for version in versions(CREATE):
        one, two = topic(talk.name(f"one{version}")), topic(talk.name(f"two{version}"), 2)
        create(talk, "one good, one bad", version, one, topic("not a name"))
        create(talk, "the same twice", version, two, two)
        create(talk, "the same twice and another", version, two, two, topic(talk.name(f"three{version}")))
        create(talk, "none", version)


@scenario
def assignments_by_hand(talk: Talk) -> None:
    def assigned(*brokers: list[int], **more: Any) -> dict[str, Any]:
        partitions = [{"partition_index": n, "broker_ids": ids} for n, ids in enumerate(brokers)]
        return topic("", -1, -1, assignments=partitions) | more

    cases = {
        "two partitions on this node": assigned([1], [1]),
        "a count beside the assignment": assigned([1], [1], num_partitions=2),
        "a factor beside the assignment": assigned([1], [1], replication_factor=1),
        "a broker that is not there": assigned([9]),
        "the same broker twice": assigned([1, 1]),
        "no broker": assigned([]),
        "partitions that start at 1": topic(
            "", -1, -1, assignments=[{"partition_index": 1, "broker_ids": [1]}]
        ),
        "the same partition twice": topic(
            "", -1, -1, assignments=[{"partition_index": 0, "broker_ids": [1]}] * 2
        ),
        "a negative broker": assigned([-1]),
        "factors that differ": assigned([1], [1, 1]),
    }
    for number, (label, wanted) in enumerate(cases.items()):
        for version in (2, 5, 7):
            create(talk, label, version, wanted | {"name": talk.name(f"case{number}.v{version}")})


@scenario
def wrong_settings(talk: Talk) -> None:
    cases: dict[str, dict[str, str | None]] = {
        "an unknown name": {"no_such_thing": "1"},
        "not a number": {"retention_ms": "soon"},
        "an empty number": {"retention_ms": ""},
        "null": {"retention_ms": None},
        "below the least": {"segment_bytes": "1"},
        "not a boolean": {"preallocate": "maybe"},
        "not a choice": {"compression_type": "zip"},
        "not a policy": {"cleanup_policy": "keep"},
        "two policies": {"cleanup_policy": "compact,delete"},
        "blanks in a list": {"cleanup_policy": " compact , delete "},
        "no policy": {"cleanup_policy": ""},
        "over an integer": {"max_message_bytes": "99999999999"},
        "a ratio over one": {"min_cleanable_dirty_ratio": "1.5"},
        "a lag above the other": {"min_compaction_lag_ms": "10", "max_compaction_lag_ms": "5"},
        "zero replicas in sync": {"min_insync_replicas": "0"},
        "bad throttled replicas": {"leader_replication_throttled_replicas": "x"},
        "good throttled replicas": {"leader_replication_throttled_replicas": "0:1,1:1"},
        "a timestamp type": {"message_timestamp_type": "Sometimes"},
        "a number with blanks": {"retention_ms": " 1000 "},
        "a hexadecimal number": {"retention_ms": "0x10"},
        "a number with a plus": {"retention_ms": "+5"},
        "a number with underscores": {"retention_ms": "1_000"},
        "upper case": {"compression_type": "GZIP"},
        "a boolean in upper case": {"preallocate": "TRUE"},
        "a broker's name": {"log_retention_ms": "1000"},
        "remote storage where there is none": {"remote_storage_enable": "true"},
        "local retention": {"local_retention_ms": "5", "retention_ms": "10"},
        "gzip level": {"compression_gzip_level": "10"},
        "zstd level": {"compression_zstd_level": "-5"},
    }
    for number, (label, values) in enumerate(cases.items()):
        create(talk, label, 7, topic(talk.name(f"case{number}"), configs=settings(**values)))
    create(talk, "as seen by version 2", 2, topic(talk.name("old"), configs=settings(no_such="1")))
    twice = settings(retention_ms="1000") + settings(retention_ms="2000")
    create(talk, "a setting twice", 7, topic(talk.name("twice"), configs=twice))


@scenario
def every_version_deletes(talk: Talk) -> None:
    for version in versions(DELETE):
        name = talk.topic(f"v{version}", 2)
        talk.ask("a topic", DELETE, version, timeout_ms=30_000, topic_names=[name], topics=[{"name": name}])
        talk.ask("again", DELETE, version, timeout_ms=30_000, topic_names=[name], topics=[{"name": name}])
        two = [talk.topic(f"v{version}.one"), talk.name("missing")]
        by_name = [{"name": each} for each in two]
        talk.ask("one there, one not", DELETE, version, timeout_ms=30_000, topic_names=two, topics=by_name)
        talk.ask("none", DELETE, version, timeout_ms=30_000, topic_names=[], topics=[])
        twice = [talk.topic(f"v{version}.twice")] * 2
        by_name = [{"name": each} for each in twice]
        talk.ask("the same twice", DELETE, version, timeout_ms=30_000, topic_names=twice, topics=by_name)


@scenario
def deleting_by_id(talk: Talk) -> None:
    name = talk.topic()
    topic_id = talk.topic_ids[name]
    unknown = {"name": None, "topic_id": b"0123456789abcdef"}
    talk.ask("unknown id", DELETE, 6, timeout_ms=30_000, topics=[unknown])
    talk.ask("name and id", DELETE, 6, timeout_ms=30_000, topics=[{"name": name, "topic_id": topic_id}])
    talk.ask("neither", DELETE, 6, timeout_ms=30_000, topics=[{"name": None, "topic_id": bytes(16)}])
    by_name, by_id = {"name": name}, {"name": None, "topic_id": topic_id}
    talk.ask("the same by name and by id", DELETE, 6, timeout_ms=30_000, topics=[by_name, by_id])
    talk.ask("by id", DELETE, 6, timeout_ms=30_000, topics=[by_id])
    talk.ask("by id again", DELETE, 6, timeout_ms=30_000, topics=[by_id])
    talk.ask("a bad name", DELETE, 6, timeout_ms=30_000, topics=[{"name": "not a name"}])
    talk.ask("an empty name", DELETE, 6, timeout_ms=30_000, topics=[{"name": ""}])
    talk.ask("an internal topic", DELETE, 6, timeout_ms=30_000, topics=[{"name": "__cluster_metadata"}])


@scenario
def every_version_adds_partitions(talk: Talk) -> None:
    def grow(label: str, version: int, *wanted: dict[str, Any], **more: Any) -> None:
        talk.ask(label, GROW, version, topics=list(wanted), timeout_ms=30_000, **more)

    for version in versions(GROW):
        name = talk.topic(f"v{version}", 2)
        missing = talk.name("missing")
        grow("validate only", version, {"name": name, "count": 4, "assignments": None}, validate_only=True)
        grow("to four", version, {"name": name, "count": 4, "assignments": None})
        for count in (4, 3, 0, -1, 2**31 - 1):
            grow(f"four to {count}", version, {"name": name, "count": count, "assignments": None})
        grow("unknown topic", version, {"name": missing, "count": 4, "assignments": None})
        by_hand = [{"broker_ids": [1]}]
        grow("by hand", version, {"name": name, "count": 5, "assignments": by_hand})
        grow("by hand, too many", version, {"name": name, "count": 6, "assignments": by_hand * 2})
        grow("by hand, too few", version, {"name": name, "count": 8, "assignments": by_hand})
        grow("by hand, nowhere", version, {"name": name, "count": 6, "assignments": [{"broker_ids": [9]}]})
        grow("by hand, twice", version, {"name": name, "count": 6, "assignments": [{"broker_ids": [1, 1]}]})
        grow("by hand, none", version, {"name": name, "count": 6, "assignments": [{"broker_ids": []}]})
        grow("an empty assignment", version, {"name": name, "count": 6, "assignments": []})
        twice = {"name": name, "count": 9, "assignments": None}
        grow("the same topic twice", version, twice, twice)
        grow("none", version)
        grow("a bad name", version, {"name": "not a name", "count": 2, "assignments": None})
