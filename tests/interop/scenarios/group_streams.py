"""The streams protocol (KIP-1071): heartbeats, topologies, tasks, and all that can be wrong in them."""

from __future__ import annotations

import time
from typing import Any

from barnabas.protocol import ApiKey

from ..members import Member, commit_topic, describe, fetch_offsets, subscription
from ..streams_members import (
    BEAT,
    DESCRIBE,
    StreamsMember,
    joining,
    settle,
    simple,
    streams_group,
    subtopology,
    topic_info,
    word_count,
)
from ..talk import Talk, scenario
from .group_consumer import joins, newcomer
from .group_migration import kind

DELETE, LIST = ApiKey.DELETE_GROUPS, ApiKey.LIST_GROUPS


def described(talk: Talk, label: str, name: str) -> dict[str, Any]:
    return talk.ask(label, DESCRIBE, 0, group_ids=[name])


@scenario
def a_life(talk: Talk) -> None:
    topic = talk.topic(partitions=3)
    name = streams_group(talk)
    one = StreamsMember(talk, name, "one", simple(topic), client_tags=[{"key": "zone", "value": "a"}])
    one.joins()
    described(talk, "joined", name)
    one.reports()
    one.beats("says nothing new")
    one.beats("names its rack", rack_id="r1")
    described(talk, "with a rack", name)
    one.reports("reports again")
    one.joins("joins again")
    kind(talk, "with a member", name)
    describe(talk, "as a classic group", name)
    talk.ask("as a consumer group", ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=[name])
    talk.ask("deleted too early", DELETE, 2, groups_names=[name])
    one.leaves()
    described(talk, "left", name)
    kind(talk, "without members", name)
    one.beats("beats after it left", 3)
    one.leaves("leaves again")
    talk.ask("deleted", DELETE, 2, groups_names=[name])
    described(talk, "deleted", name)
    one.leaves("leaves what is gone")
    one.beats("beats in what is gone", 3)


@scenario
def internal_topics_are_created(talk: Talk) -> None:
    source = talk.topic(partitions=3)
    name = streams_group(talk)
    one = StreamsMember(talk, name, "one", word_count(talk, source))
    one.joins()
    described(talk, "not ready", name)
    one.waits_for_topics()
    settle(one)
    described(talk, "ready", name)
    for suffix in ("words", "counts"):
        talk.wait_until_served(talk.name(suffix), 3)
        talk.ask(
            suffix,
            ApiKey.DESCRIBE_CONFIGS,
            4,
            resources=[
                {
                    "resource_type": 2,
                    "resource_name": talk.name(suffix),
                    "configuration_keys": ["cleanup.policy", "retention.ms"],
                }
            ],
        )
    one.leaves()
    described(talk, "empty", name)


@scenario
def topics_that_do_not_fit(talk: Talk) -> None:
    two, three = talk.topic("two", 2), talk.topic("three", 3)
    existing = talk.topic("existing", 5)
    repartition = topic_info(talk.name("words"), 4)
    cases = {
        "a source that is missing": simple(talk.name("missing")),
        "four sources that are missing": simple(*(talk.name(f"missing-{n}") for n in "dbca")),
        "copartitioned sources of two sizes": {
            "epoch": 0,
            "subtopologies": [subtopology(0, [two, three], together=[([0, 1], [])])],
        },
        "sources of two sizes": simple(two, three),
        "a fixed repartition topic beside a source": {
            "epoch": 0,
            "subtopologies": [subtopology(0, [two], reads=[repartition], together=[([0], [0])])],
        },
        "an internal topic of another size": {
            "epoch": 0,
            "subtopologies": [
                subtopology(0, [two], writes=[existing]),
                subtopology(1, [], reads=[topic_info(existing)]),
            ],
        },
        "a changelog topic of another size": {
            "epoch": 0,
            "subtopologies": [subtopology(0, [two], stores=[topic_info(existing)])],
        },
        "fixed repartition topics of two sizes": {
            "epoch": 0,
            "subtopologies": [
                subtopology(
                    0, [], reads=[topic_info(talk.name("a"), 2), topic_info(talk.name("b"), 3)],
                    together=[([], [0, 1])],
                )
            ],
        },
    }  # fmt: skip
    for number, (label, topology) in enumerate(cases.items()):
        name = streams_group(talk, f"g{number}")
        one = StreamsMember(talk, name, "one", topology)
        one.joins(f"joins with {label}")
        described(talk, label, name)
        one.reports(f"beats with {label}")
        one.leaves()


@scenario
def internal_topics_that_cannot_be_created(talk: Talk) -> None:
    source = talk.topic(partitions=2)
    name = streams_group(talk)
    store = topic_info(talk.name("store"), nonsense_setting="1")
    topology = {"epoch": 0, "subtopologies": [subtopology(0, [source], stores=[store])]}
    one = StreamsMember(talk, name, "one", topology)
    one.joins()
    while "Creation failed" not in str(one.silently()["status"]):
        time.sleep(0.05)
    one.beats("hears why")


@scenario
def topologies_that_are_wrong(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    loop = [
        subtopology(0, [], reads=[topic_info(talk.name("a"))], writes=[talk.name("b")]),
        subtopology(1, [], reads=[topic_info(talk.name("b"))], writes=[talk.name("a")]),
    ]
    regex = subtopology(0, [topic]) | {"source_topic_regex": ["a.*"]}
    cases: dict[str, list[dict[str, Any]]] = {
        "a loop": loop,
        "a source that nobody writes": [subtopology(0, [topic], reads=[topic_info(talk.name("a"))])],
        "no sources": [subtopology(0, [], stores=[topic_info(talk.name("store"))])],
        "no subtopologies": [],
        "two of one name": [subtopology(0, [topic]), subtopology(0, [topic])],
        "an internal topic of Kafka": [subtopology(0, ["__consumer_offsets", topic, "__share_group_state"])],
        "names that are none": [subtopology(0, ["a b", topic], writes=["..", topic])],
        "an expression": [regex],
        "a changelog with partitions": [subtopology(0, [topic], stores=[topic_info(talk.name("s"), 3)])],
        "a position beyond the list": [subtopology(0, [topic], together=[([5], [])])],
        "a negative position": [subtopology(0, [topic], together=[([-1], [])])],
        "a negative size": [subtopology(0, [topic], reads=[topic_info(talk.name("n"), -2)])],
        "a setting that is none": [
            subtopology(0, [topic], stores=[topic_info(talk.name("bad"), nonsense_setting="1")])
        ],
        "twice the same changelog": [
            subtopology(0, [topic], stores=[topic_info(talk.name("t")), topic_info(talk.name("t"))])
        ],
    }
    for number, (label, subtopologies) in enumerate(cases.items()):
        name = streams_group(talk, f"g{number}")
        one = StreamsMember(talk, name, "one", {"epoch": 0, "subtopologies": subtopologies})
        one.joins(f"joins with {label}")
        described(talk, label, name)
    name = streams_group(talk, "negative")
    StreamsMember(talk, name, "one", simple(topic, epoch=-1)).joins("joins with a negative epoch")


@scenario
def requests_that_are_wrong(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    name = streams_group(talk)
    tasks = [{"subtopology_id": "0", "partitions": [0]}]
    offsets = [{"subtopology_id": "0", "partition": 0, "offset": 1}]
    cases: dict[str, dict[str, Any]] = {
        "no group": {"group_id": ""},
        "a blank group": {"group_id": "  "},
        "no member": {"member_id": ""},
        "a blank rack": {"rack_id": " "},
        "an instance": {"instance_id": "i"},
        "an empty instance": {"instance_id": ""},
        "no timeout": {"rebalance_timeout_ms": -1},
        "active tasks": {"active_tasks": tasks},
        "standby tasks": {"standby_tasks": tasks},
        "warm-up tasks": {"warmup_tasks": tasks},
        "no active tasks": {"active_tasks": None},
        "no topology": {"topology": None},
        "offsets of tasks": {"task_offsets": offsets},
        "no offsets of tasks": {"task_offsets": []},
        "end offsets of tasks": {"task_end_offsets": offsets},
        "epoch -2": {"member_epoch": -2, "topology": None},
        "epoch -3": {"member_epoch": -3, "topology": None},
        "epoch -1 with a topology": {"member_epoch": -1},
        "epoch 1 with a topology": {"member_epoch": 1},
        "epoch 1": {"member_epoch": 1, "topology": None},
        "some tasks": {"member_epoch": 1, "topology": None, "standby_tasks": None},
        "two tags of one name": {
            "client_tags": [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}],
        },
    }
    for label, fields in cases.items():
        body = {"group_id": name, "member_id": "one", **joining(simple(topic)), **fields}
        answer = talk.ask(label, BEAT, 0, **body)
        talk.note(f"{label}: why", {"message": answer["error_message"]})
    talk.ask("nothing came of it", DESCRIBE, 0, group_ids=[name, ""])


@scenario
def epochs(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    name = streams_group(talk)
    one = StreamsMember(talk, name, "one", simple(topic))
    one.joins()
    settle(one)
    epoch = one.epoch
    one.beats("beats from the future", epoch + 1)
    one.beats("beats from the past", 1)
    one.beats("beats one behind", epoch - 1)
    one.beats("beats one behind and reports", epoch - 1, **one.tasks)
    tasks = {"standby_tasks": [], "warmup_tasks": []}
    other = [{"subtopology_id": "0", "partitions": [7]}]
    one.beats("reports a task that is none", **tasks, active_tasks=other)
    other = [{"subtopology_id": "9", "partitions": [0]}]
    one.beats("reports a subtopology that is none", **tasks, active_tasks=other)
    StreamsMember(talk, name, "two", simple(topic)).beats("beats without joining", 1)
    StreamsMember(talk, name, "two", simple(topic)).leaves("leaves without joining")
    one.beats("beats on")


@scenario
def tasks_move_between_processes(talk: Talk) -> None:
    topic = talk.topic(partitions=4)
    name = streams_group(talk)
    one = StreamsMember(talk, name, "one", simple(topic))
    two = StreamsMember(talk, name, "two", simple(topic))
    one.joins()
    one.reports()
    described(talk, "alone", name)
    two.joins()
    described(talk, "two has joined", name)
    two.reports("waits")
    one.beats("hears that it must revoke")
    described(talk, "one has to revoke", name)
    one.beats("says nothing of it")
    two.reports("waits still")
    one.reports("has revoked")
    described(talk, "one has revoked", name)
    two.reports("gets tasks")
    settle(one, two)
    described(talk, "settled", name)
    three = StreamsMember(talk, name, "three", simple(topic))
    three.joins()
    settle(one, two, three)
    two.leaves()
    settle(one, three)
    one.leaves()
    settle(three)


@scenario
def threads_of_one_process(talk: Talk) -> None:
    source = talk.topic(partitions=5)
    name = streams_group(talk)
    topology = word_count(talk, source)
    members = [
        StreamsMember(talk, name, label, topology, process_id=process)
        for label, process in (("a1", "A"), ("a2", "A"), ("b1", "B"), ("a3", "A"), ("c1", "C"))
    ]
    members[0].joins()
    members[0].waits_for_topics()
    for count in range(1, len(members) + 1):
        if count > 1:
            members[count - 1].joins()
        settle(*members[:count])
    members[2].leaves()
    settle(*members[:2], *members[3:])


@scenario
def standby_tasks(talk: Talk) -> None:
    source = talk.topic(partitions=3)
    name = streams_group(talk, num_standby_replicas="1")
    topology = word_count(talk, source)
    one, two, three = (StreamsMember(talk, name, label, topology) for label in ("one", "two", "three"))
    one.joins()
    one.waits_for_topics()
    settle(one)
    two.joins()
    settle(one, two)
    described(talk, "with standbys", name)
    three.joins()
    settle(one, two, three)
    one.leaves()
    settle(two, three)
    described(talk, "standbys took over", name)
    change = [{"name": "streams.num.standby.replicas", "config_operation": 0, "value": "0"}]
    resource = {"resource_type": 32, "resource_name": name, "configs": change}
    talk.silently(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    settle(two, three)


@scenario
def endpoints(talk: Talk) -> None:
    source = talk.topic(partitions=3)
    name = streams_group(talk, num_standby_replicas="1")
    topology = word_count(talk, source)
    one = StreamsMember(talk, name, "one", topology, user_endpoint={"host": "h1", "port": 1})
    two = StreamsMember(talk, name, "two", topology, user_endpoint={"host": "h2", "port": 65_535})
    three = StreamsMember(talk, name, "three", topology)
    one.joins()
    one.waits_for_topics()
    settle(one)
    one.beats("asks for endpoints", endpoint_information_epoch=-1)
    two.joins()
    three.joins()
    settle(one, two, three)
    answer = one.silently(endpoint_information_epoch=-1)
    talk.note("the endpoints", answer["partitions_by_user_endpoint"])
    one.beats("knows all", endpoint_information_epoch=answer["endpoint_information_epoch"])
    described(talk, "with endpoints", name)
    three.leaves()
    two.leaves()
    settle(one)
    one.beats("is alone", endpoint_information_epoch=-1)


@scenario
def endpoints_without_topics(talk: Talk) -> None:
    name = streams_group(talk)
    topology = simple(talk.name("missing"))
    one = StreamsMember(talk, name, "one", topology, user_endpoint={"host": "h1", "port": 1})
    one.joins("joins with an endpoint and without its source")
    talk.ask("described", DESCRIBE, 0, group_ids=[name])


@scenario
def topology_epochs(talk: Talk) -> None:
    topic, other = talk.topic(partitions=2), talk.topic("other")
    name = streams_group(talk)
    one = StreamsMember(talk, name, "one", simple(topic, epoch=3))
    one.joins()
    two = StreamsMember(talk, name, "two", simple(topic, epoch=2))
    two.joins("joins with an older topology")
    two.beats()
    StreamsMember(talk, name, "three", simple(topic, epoch=4)).joins("joins with a newer topology")
    StreamsMember(talk, name, "four", simple(other, epoch=3)).joins("joins with another topology")
    StreamsMember(talk, name, "five", simple(other, epoch=1)).joins("joins with another, older topology")
    described(talk, "of two epochs", name)


@scenario
def the_application_shuts_down(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    name = streams_group(talk)
    one, two = (StreamsMember(talk, name, label, simple(topic)) for label in ("one", "two"))
    one.joins()
    two.joins()
    settle(one, two)
    one.beats("asks everybody to stop", shutdown_application=True)
    two.beats("hears of it")
    two.beats("asks too", shutdown_application=True)
    one.leaves("leaves and asks again", shutdown_application=True)
    two.beats("hears of it still")
    two.leaves()
    one.joins("joins after all have stopped")


@scenario
def the_first_assignment_waits(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    name = streams_group(talk, initial_rebalance_delay_ms="1000")
    one, two = (StreamsMember(talk, name, label, simple(topic)) for label in ("one", "two"))
    one.joins()
    described(talk, "delayed", name)
    two.joins()
    one.beats("waits")
    settle(one, two)
    described(talk, "assigned", name)


@scenario
def offsets(talk: Talk) -> None:
    topic, other = talk.topic(partitions=2), talk.topic("other")
    name = streams_group(talk)
    one = StreamsMember(talk, name, "one", simple(topic))
    one.joins()
    settle(one)
    started = one.epoch

    def commit(label: str, version: int = 9, of: str = topic, **fields: Any) -> None:
        body: dict[str, Any] = {
            "group_id": name,
            "generation_id_or_member_epoch": one.epoch,
            "member_id": one.id,
            "topics": [commit_topic(talk, of, {0: 5})],
        }
        talk.ask(label, ApiKey.OFFSET_COMMIT, version, **(body | fields))

    for version in (8, 9, 10):
        commit("commits", version)
    commit("commits a topic that it does not read", of=other)
    commit("commits from the future", generation_id_or_member_epoch=started + 1)
    commit("commits as nobody", member_id="nobody")
    commit("commits as administrator", member_id="", generation_id_or_member_epoch=-1)
    two = StreamsMember(talk, name, "two", simple(topic))
    two.joins()
    settle(one, two)
    talk.note("tasks", {"one": one.tasks, "two": two.tasks})
    for index in (0, 1):
        part = {"topics": [commit_topic(talk, topic, {index: 7})]}
        commit(f"one commits {index} with its first epoch", generation_id_or_member_epoch=started, **part)
        commit(
            f"two commits {index} with an epoch from before",
            member_id="two",
            generation_id_or_member_epoch=started,
            **part,
        )
    commit("one commits another topic with its first epoch", of=other, generation_id_or_member_epoch=started)
    fetch_offsets(talk, "anybody reads", name, {topic: [0, 1]})
    fetch_offsets(talk, "one reads", name, {topic: [0]}, member_id="one", member_epoch=one.epoch)
    fetch_offsets(talk, "one reads as before", name, {topic: [0]}, member_id="one", member_epoch=started)
    fetch_offsets(talk, "nobody reads", name, {topic: [0]}, member_id="nobody", member_epoch=1)
    wanted = [{"name": each, "partitions": [{"partition_index": 0}]} for each in (topic, other)]
    talk.ask("deletes offsets", ApiKey.OFFSET_DELETE, 0, group_id=name, topics=wanted)
    one.leaves()
    two.leaves()
    commit("commits to an empty group", member_id="", generation_id_or_member_epoch=-1)
    talk.ask("deletes offsets of an empty group", ApiKey.OFFSET_DELETE, 0, group_id=name, topics=wanted)
    fetch_offsets(talk, "what is left", name, None)
    talk.ask("deletes the group", DELETE, 2, groups_names=[name])
    fetch_offsets(talk, "what is left then", name, None)


@scenario
def other_kinds_of_groups(talk: Talk) -> None:
    """An empty classic group becomes a streams group and back; groups in use do not."""
    topic = talk.topic(partitions=2)
    name = streams_group(talk)
    classic = Member(talk, name, "classic", protocols=[{"name": "range", "metadata": subscription(topic)}])
    classic.join()
    classic.sync(assignments={classic.id: b"all"})
    classic.commit("commits", topic, 5)
    one = StreamsMember(talk, name, "one", simple(topic))
    one.joins("joins a classic group in use")
    one.beats("beats in a classic group", 1)
    one.leaves("leaves a classic group")
    described(talk, "a classic group", name)
    classic.leave()
    one.joins("joins an empty classic group")
    kind(talk, "taken over", name)
    fetch_offsets(talk, "the offsets stay", name, {topic: [0]})
    settle(one)
    classic.id = ""
    classic.join("joins a streams group in use")
    classic.beat("beats in a streams group", member_id="one", generation_id=1)
    classic.sync("syncs in a streams group", member_id="one", generation_id=1)
    classic.leave("leaves a streams group", members=[{"member_id": "one"}])
    consumer = newcomer(talk, name, "consumer", [topic])
    joins(consumer, "joins a streams group")
    consumer.heartbeat("beats in a streams group", epoch=1)
    consumer.heartbeat("leaves a streams group", epoch=-1)
    one.leaves()
    joins(consumer, "joins an empty streams group")
    classic.id = ""
    classic.join("joins an empty streams group")
    kind(talk, "classic again", name)
    fetch_offsets(talk, "the offsets stay", name, {topic: [0]})
    classic.sync(assignments={classic.id: b"all"})
    classic.leave()
    talk.ask("deleted", DELETE, 2, groups_names=[name])
    consumer.close(), classic.close()
    name = streams_group(talk, "consumers")
    consumer = newcomer(talk, name, "consumer", [topic])
    joins(consumer)
    one = StreamsMember(talk, name, "one", simple(topic))
    one.joins("joins a consumer group")
    consumer.heartbeat("leaves", epoch=-1)
    one.joins("joins an empty consumer group")
    described(talk, "a consumer group", name)
    consumer.close()


@scenario
def topics_that_change(talk: Talk) -> None:
    source = talk.topic(partitions=2)
    name = streams_group(talk)
    one = StreamsMember(talk, name, "one", simple(source))
    one.joins()
    settle(one)
    count = {"name": source, "count": 4, "assignments": None}
    talk.silently(ApiKey.CREATE_PARTITIONS, 3, topics=[count], timeout_ms=30_000)
    talk.wait_until_served(source, 4)
    while sum(len(each["partitions"]) for each in one.tasks["active_tasks"]) < 4:
        one.silently(**one.tasks)
    settle(one)
    described(talk, "grown", name)
    talk.silently(ApiKey.DELETE_TOPICS, 6, topics=[{"name": source}], timeout_ms=30_000)
    while not any(status["status_code"] == 1 for status in one.silently(**one.tasks)["status"]):
        pass
    one.reports("reports what is gone")
    one.reports("reports nothing")
    described(talk, "without its source", name)


@scenario
def listing(talk: Talk) -> None:
    topic = talk.topic()
    name = streams_group(talk)
    one = StreamsMember(talk, name, "one", simple(topic))
    one.joins()
    for states in ([], ["Stable"], ["STABLE"], ["Empty"], ["Reconciling", "stable"]):
        for types in ([], ["streams"], ["Streams"], ["consumer"]):
            found = talk.silently(LIST, 5, states_filter=states, types_filter=types)["groups"]
            own = [each for each in found if each["group_id"] == name]
            talk.note(f"{states} {types}", own)
