"""Metadata, DescribeTopicPartitions, DescribeCluster, DescribeLogDirs, DescribeQuorum, ApiVersions."""

from __future__ import annotations

import time
from typing import Any

from barnabas.protocol import ApiKey

from ..requests import batch, produce, versions
from ..talk import Talk, scenario

METADATA = ApiKey.METADATA
BUILT = {0, 1, 2, 3, 18, 19, 20, 22, 23, 32, 35, 37, 44, 55, 60, 61, 75}
"""APIs whose versions are compared; a broker may announce more."""


@scenario
def every_version_of_metadata(talk: Talk) -> None:
    name = talk.topic(partitions=3)
    missing = talk.name("missing")
    for version in versions(METADATA):
        operations = {
            "include_topic_authorized_operations": True,
            "include_cluster_authorized_operations": True,
        }
        for label, extra in (("plain", {}), ("with operations", operations)):
            more = {**extra, "allow_auto_topic_creation": False}
            talk.ask(f"a topic, {label}", METADATA, version, topics=[{"name": name}], **more)
        if version >= 4:
            off = {"allow_auto_topic_creation": False}
            talk.ask("unknown topic", METADATA, version, topics=[{"name": missing}], **off)
            talk.ask("both", METADATA, version, topics=[{"name": name}, {"name": missing}], **off)
            talk.ask("twice", METADATA, version, topics=[{"name": name}, {"name": name}], **off)
        if version >= 1:
            talk.ask("no topics", METADATA, version, topics=[])
        everything = talk.silently(METADATA, version, topics=None if version else [])
        everything["topics"] = [each for each in everything["topics"] if each["name"] == name]
        talk.note(f"METADATA v{version}: all topics", everything)


@scenario
def metadata_by_id_and_with_bad_names(talk: Talk) -> None:
    name = talk.topic()
    known, unknown = talk.topic_ids[name], b"0123456789abcdef"
    off = {"allow_auto_topic_creation": False}
    for version in (10, 11, 12, 13):
        talk.ask("by id", METADATA, version, topics=[{"name": None, "topic_id": known}], **off)
        talk.ask("by unknown id", METADATA, version, topics=[{"name": None, "topic_id": unknown}], **off)
        talk.ask("by id and name", METADATA, version, topics=[{"name": name, "topic_id": known}], **off)
        talk.ask("by neither", METADATA, version, topics=[{"name": None, "topic_id": bytes(16)}], **off)
    for wrong in ("", "not a name", "a" * 250, "."):
        for version in (4, 9, 12):
            label = f"name {wrong[:12]!r}"
            talk.ask(label, METADATA, version, topics=[{"name": wrong}], **off)
            talk.ask(label + ", may create", METADATA, version, topics=[{"name": wrong}])


@scenario
def asking_creates_topics(talk: Talk) -> None:
    for version in (0, 1, 3, 4, 9, 13):
        name = talk.name(f"v{version}")
        talk.ask("unknown topic that may be created", METADATA, version, topics=[{"name": name}])
        deadline = time.monotonic() + 20
        while True:
            answer = talk.silently(METADATA, 9, topics=[{"name": name}], allow_auto_topic_creation=False)
            if answer["topics"][0]["error_code"] == "NONE":
                break
            assert time.monotonic() < deadline, answer
        talk.note("then it is there", answer)


@scenario
def topic_partitions_page_by_page(talk: Talk) -> None:
    api = ApiKey.DESCRIBE_TOPIC_PARTITIONS
    first, second = talk.topic("first", 3), talk.topic("second", 2)
    both = [{"name": second}, {"name": first}]
    talk.ask("two topics", api, 0, topics=both)
    for limit in (1, 2, 3, 4, 5, 0, -1):
        talk.ask(f"at most {limit}", api, 0, topics=both, response_partition_limit=limit)
    for cursor in (
        (first, 0),
        (first, 2),
        (first, 3),
        (first, 9),
        (second, 1),
        (first, -1),
        (talk.name("gone"), 0),
    ):
        where = {"topic_name": cursor[0], "partition_index": cursor[1]}
        talk.ask(f"from {cursor}", api, 0, topics=both, cursor=where)
        talk.ask(f"from {cursor}, at most 2", api, 0, topics=both, cursor=where, response_partition_limit=2)
    talk.ask("unknown topic", api, 0, topics=[{"name": talk.name("missing")}])
    talk.ask("unknown topic beside", api, 0, topics=[*both, {"name": talk.name("missing")}])
    talk.ask("bad name", api, 0, topics=[{"name": "not a name"}])
    talk.ask("the same twice", api, 0, topics=[{"name": first}, {"name": first}])


@scenario
def every_version_of_describe_cluster(talk: Talk) -> None:
    api = ApiKey.DESCRIBE_CLUSTER
    for version in versions(api):
        for operations in (False, True):
            label = f"operations {operations}"
            talk.ask(label, api, version, include_cluster_authorized_operations=operations)
        if version:
            for endpoint in (1, 2, 0, 3, -1):
                talk.ask(f"endpoint type {endpoint}", api, version, endpoint_type=endpoint)
    talk.ask("fenced brokers too", api, 2, include_fenced_brokers=True)


@scenario
def every_version_of_describe_log_dirs(talk: Talk) -> None:
    api = ApiKey.DESCRIBE_LOG_DIRS
    name = talk.topic(partitions=2)
    talk.silently(ApiKey.PRODUCE, 9, **produce(talk, name, batch(b"a")))
    for version in versions(api):
        for label, wanted in {
            "both partitions": [{"topic": name, "partitions": [0, 1]}],
            "one partition": [{"topic": name, "partitions": [1]}],
            "partitions that are not there": [{"topic": name, "partitions": [7]}],
            "unknown topic": [{"topic": talk.name("missing"), "partitions": [0]}],
            "no partitions": [{"topic": name, "partitions": []}],
            "nothing": [],
        }.items():
            talk.ask(label, api, version, topics=wanted)
        everything = talk.silently(api, version, topics=None)
        for directory in everything["results"]:
            directory["topics"] = [each for each in directory["topics"] if each["name"] == name]
        talk.note(f"{api.name} v{version}: everything", everything)


@scenario
def every_version_of_describe_quorum(talk: Talk) -> None:
    api = ApiKey.DESCRIBE_QUORUM

    def ask(label: str, version: int, topics: list[dict[str, Any]]) -> None:
        answer = talk.silently(api, version, topics=topics)
        for topic in answer.get("topics", []):
            for partition in topic["partitions"]:
                for volatile in ("leader_epoch", "high_watermark"):
                    partition[volatile] = partition[volatile] > 0
                for replica in [*partition["current_voters"], *partition["observers"]]:
                    replica["log_end_offset"] = replica["log_end_offset"] > 0
        talk.note(f"{api.name} v{version}: {label}", answer)

    for version in versions(api):
        ask(
            "the quorum",
            version,
            [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}],
        )
        ask(
            "another partition",
            version,
            [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 1}]}],
        )
        ask("another topic", version, [{"topic_name": "other", "partitions": [{"partition_index": 0}]}])
        ask("nothing", version, [])
        ask("no partitions", version, [{"topic_name": "__cluster_metadata", "partitions": []}])


@scenario
def every_version_of_api_versions(talk: Talk) -> None:
    api = ApiKey.API_VERSIONS
    for version in versions(api):
        for name, number in (
            ("interop", "1.0"),
            ("", "1"),
            ("a b", "1"),
            ("a", ""),
            ("-a", "1"),
            ("a-b.c", "1-2.3"),
        ):
            answer = talk.silently(api, version, client_software_name=name, client_software_version=number)
            answer["api_keys"] = [each for each in answer["api_keys"] if each["api_key"] in BUILT]
            talk.note(f"{api.name} v{version}: {name!r} {number!r}", answer)
            if version < 3:
                break
