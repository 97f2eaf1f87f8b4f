"""A node whose settings are not the defaults (`CONFIGURED` in comparing.py): run against such a one."""

from __future__ import annotations

from barnabas.protocol import ApiKey

from ..requests import batch, fetch, produce
from ..talk import Talk, scenario
from .topics import create, topic


@scenario
def topics_follow_the_nodes_defaults(talk: Talk) -> None:
    create(talk, "defaults", 7, topic(talk.name("defaults"), -1, -1))
    talk.wait_until_served(talk.name("defaults"), 3)
    resource = {"resource_type": 2, "resource_name": talk.name("defaults"), "configuration_keys": None}
    for version in (1, 4):
        talk.ask("described", ApiKey.DESCRIBE_CONFIGS, version, resources=[resource], include_synonyms=True)


@scenario
def nothing_is_created_by_asking(talk: Talk) -> None:
    for version in (1, 4, 9, 13):
        talk.ask("may create", ApiKey.METADATA, version, topics=[{"name": talk.name("missing")}])
    talk.ask("produced to", ApiKey.PRODUCE, 9, **produce(talk, talk.name("missing"), batch(b"x")))


@scenario
def nothing_is_deleted(talk: Talk) -> None:
    name = talk.topic()
    for version in (1, 5, 6):
        fields = {"topic_names": [name], "topics": [{"name": name}]}
        talk.ask("deleting is off", ApiKey.DELETE_TOPICS, version, timeout_ms=30_000, **fields)


@scenario
def batches_follow_the_nodes_rules(talk: Talk) -> None:
    name = talk.topic()
    talk.ask("over message.max.bytes", ApiKey.PRODUCE, 9, **produce(talk, name, batch(b"x" * 3_000)))
    talk.ask("append time", ApiKey.PRODUCE, 9, **produce(talk, name, batch(b"x" * 30, b"y" * 30, time_ms=5)))
    talk.ask("recompressed", ApiKey.FETCH, 12, **fetch(talk, {name: [{}]}))
    own = talk.topic("own", max_message_bytes="5000", compression_type="producer")
    talk.ask("the topic's own limit", ApiKey.PRODUCE, 9, **produce(talk, own, batch(b"x" * 3_000)))
    talk.ask("the topic's own compression", ApiKey.FETCH, 12, **fetch(talk, {own: [{}]}))


@scenario
def answers_are_cut_at_the_nodes_limits(talk: Talk) -> None:
    name = talk.topic(partitions=4, max_message_bytes="500000", compression_type="uncompressed")
    for partition in range(4):
        data = batch(b"x" * 3_000)
        for _ in range(4):
            talk.silently(ApiKey.PRODUCE, 9, **produce(talk, name, {partition: data}))
    places = [{"partition": n} for n in range(4)]
    for version in (4, 12, 18):
        talk.ask("fetch.max.bytes", ApiKey.FETCH, version, **fetch(talk, {name: places}))
    for limit in (1, 2, 3, 100):
        fields = {"topics": [{"name": name}], "response_partition_limit": limit}
        talk.ask(f"pages of {limit}", ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, **fields)


@scenario
def requests_are_bounded(talk: Talk) -> None:
    import struct

    talk.frame("socket.request.max.bytes + 1", struct.pack(">i", 500_001) + bytes(100))
