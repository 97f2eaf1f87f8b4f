"""Groups in data folders: each broker goes on with the groups of the other, and writes the same records."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol import ApiKey
from barnabas.testing import Broker, apache
from barnabas.testing.apache import ApacheKafka

from .conftest import ALIKE, Node
from .members import Member, commit_topic, group
from .scenarios.group_consumer import joins, newcomer, settle
from .talk import Talk
from .test_data_folders import QUICK, apache_killed, ours_killed, port_of
from .test_data_folders import apache as apache_stopped
from .test_data_folders import ours as ours_stopped
from .test_kafka_tools import dump

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("java"), pytest.mark.slow, pytest.mark.timeout(240)]

LONG_MS = 120_000
"""Members outlive the change of brokers."""


def populate(talk: Talk) -> dict[str, Member]:
    """A classic group with a static member, a consumer group, offsets of nobody, and a deleted group."""
    topic = talk.topic("topic", partitions=3)
    fields = {"session_timeout_ms": LONG_MS, "rebalance_timeout_ms": LONG_MS}
    classic = Member(talk, group(talk, "classic"), "classic", group_instance_id="i1", **fields)
    classic.join()
    classic.sync(assignments={classic.id: b"all there is"})
    classic.commit("commits", topic, 5)
    consumer = newcomer(talk, talk.name("consumer"), "consumer", [topic], rebalance_timeout_ms=LONG_MS)
    joins(consumer)
    settle(consumer)
    consumer.commit("commits", topic, 6)
    simple = Member(talk, talk.name("simple"), "simple")
    simple.commit("commits", topic, 7)
    gone = Member(talk, talk.name("gone"), "gone")
    gone.commit("commits", topic, 8)
    talk.silently(ApiKey.DELETE_GROUPS, 2, groups_names=[gone.name])
    gone.close()
    return {"classic": classic, "consumer": consumer, "simple": simple}


def offsets(talk: Talk) -> dict[str, Any]:
    """What each group committed; a broker that loads its groups is asked again."""
    topic = {"name": talk.name("topic"), "partition_indexes": [0, 1, 2]}
    found = {}
    for name in ("classic", "consumer", "simple", "gone"):
        group(talk, name)
        answer = talk.silently(
            ApiKey.OFFSET_FETCH, 9, groups=[{"group_id": talk.name(name), "topics": [topic]}]
        )
        [each] = answer["groups"]
        assert each["error_code"] == "NONE", each
        found[name] = [p["committed_offset"] for p in each["topics"][0]["partitions"]]
    return found


def listed(talk: Talk) -> list[tuple[str, ...]]:
    found = talk.silently(ApiKey.LIST_GROUPS, 5)["groups"]
    keys = ("group_id", "protocol_type", "group_state", "group_type")
    return sorted(tuple(each[key] for key in keys) for each in found)


def go_on(talk: Talk, members: dict[str, Member], offset: int) -> None:
    """The members of before are known: they beat, and commit."""
    topic = talk.name("topic")
    classic, consumer, simple = members["classic"], members["consumer"], members["simple"]
    for member in members.values():
        member.wire.close()
        member.wire = type(member.wire)(talk.port)
        member.talk = talk
    assert classic.beat()["error_code"] == "NONE"
    answer = consumer.heartbeat("beats")
    assert (answer["error_code"], answer["assignment"]) == ("NONE", None)
    settle(consumer)
    for member in (classic, consumer, simple):
        answer = member.commit("commits", topic, offset, partition=1)
        assert answer["topics"][0]["partitions"][0]["error_code"] == "NONE"
    back = Member(talk, talk.name("classic"), "restarted", **classic.fields)
    back.join()
    assert back.sync("asks")["assignment"] == b"all there is", "a static member has its part again"
    classic.close()
    members["classic"] = back


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (apache_stopped, ours_stopped),
        (ours_stopped, apache_stopped),
        (apache_killed, ours_killed),
        (ours_killed, apache_killed),
    ],
    ids=["apache then ours", "ours then apache", "apache killed, then ours", "ours killed, then apache"],
)
def test_groups_go_on_with_the_other_broker(
    tmp_path: Path, first: Callable[..., Any], second: Callable[..., Any]
) -> None:
    data = tmp_path / "data"
    with first(data) as bootstrap, closing(Talk(port_of(bootstrap), "moving")) as talk:
        members = populate(talk)
        topic_ids, before, groups = talk.topic_ids, offsets(talk), listed(talk)
    assert before == {
        "classic": [5, -1, -1],
        "consumer": [6, -1, -1],
        "simple": [7, -1, -1],
        "gone": [-1] * 3,
    }

    for number, broker in enumerate((second, first), 10):
        with broker(data) as bootstrap, closing(Talk(port_of(bootstrap), "moving")) as talk:
            talk.topic_ids = topic_ids
            talk.wait_until_served(talk.name("topic"), 3)
            assert offsets(talk) == before
            assert listed(talk) == groups
            go_on(talk, members, number)
            before = {name: [each[0], number, -1] for name, each in before.items() if name != "gone"}
            before["gone"] = [-1, -1, -1]
            assert offsets(talk) == before
    for member in members.values():
        member.close()


def everything(talk: Talk) -> None:
    """A bit of all that groups write down."""
    topic = talk.topic("topic", partitions=2)
    classic = Member(talk, group(talk, "classic"), "classic", group_instance_id="i1")
    classic.join()
    classic.sync(assignments={classic.id: b"all"})
    classic.commit("commits", topic, 5)
    epochs = commit_topic(talk, topic, {1: 9}, "words")
    epochs["partitions"][0]["committed_leader_epoch"] = 3
    classic.commit("commits", topic, 6, topics=[epochs])
    classic.commit("for a while", topic, 6, 4, retention_time_ms=100_000)
    classic.leave()
    name = talk.name("consumer")
    one = newcomer(talk, name, "one", [topic], instance_id="i2", rack_id="rack")
    joins(one)
    settle(one)
    one.commit("commits by id", topic, 7, 10)
    one.heartbeat("leaves", epoch=-1, instance_id="i2")
    simple = Member(talk, talk.name("simple"), "simple")
    simple.commit("commits", topic, 7)
    talk.silently(
        ApiKey.OFFSET_DELETE,
        0,
        group_id=simple.name,
        topics=[{"name": topic, "partitions": [{"partition_index": 0}]}],
    )
    talk.silently(ApiKey.DELETE_GROUPS, 2, groups_names=[classic.name, name])
    for member in (classic, one, simple):
        member.close()


def test_the_records_are_those_of_apache_kafka(tmp_path: Path) -> None:
    """As its own tool prints them, one after the other."""
    dumps = []
    for kind, settings in ((ApacheKafka, QUICK), (Broker, ALIKE)):
        data = tmp_path / kind.__name__
        with kind(data, overrides=settings) as broker, closing(Talk(broker.port, "records")) as talk:
            everything(talk)
        log = data / "__consumer_offsets-0" / "00000000000000000000.log"
        printed = dump("--offsets-decoder", "--print-data-log", files=[log])
        assert "isvalid: false" not in printed
        dumps.append([neutral(line) for line in printed.splitlines() if " key: " in line])
    theirs, ours = dumps

    assert ours == theirs
    assert len(ours) > 20


def neutral(line: str) -> str:
    """Key and value, without ids and times."""
    found = line[line.index(" key: ") :]
    found = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uuid>", found)
    found = re.sub(r"(?i)(timestamp\w*\"):\"?1[0-9]{12}\"?", r"\1:<time>", found)
    found = re.sub(r"(topicId\"):\"[\w-]{22}\"", r"\1:<id>", found)
    return re.sub(r"(?i)(hash\"):\"?-?[0-9]+\"?", r"\1:<hash>", found)


def test_the_offsets_of_our_folder_are_shown_by_kafkas_group_tool(node: Node) -> None:
    with closing(Talk(node.port, "tool")) as talk:
        simple = Member(talk, group(talk, "lagging"), "simple")
        simple.commit("commits", talk.topic("topic"), 0)
        done = apache.tool(
            "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
            *("--bootstrap-server", node.bootstrap, "--describe", "--group", simple.name),
        )
        simple.close()

    assert done.returncode == 0, done.stderr
    assert re.search(rf"{simple.name}\s+{talk.name('topic')}\s+0\s+0\s+0\s+0\s", done.stdout), done.stdout
