"""The streams protocol (KIP-1071): heartbeats, topologies, tasks, and all that can be wrong in them."""

from __future__ import annotations

from typing import Any

from barnabas.protocol import ApiKey

from ..members import Member, commit_topic, describe, fetch_offsets, subscription
from ..streams_members import (
    DESCRIBE,
    StreamsMember,
    settle,
    simple,
    streams_group,
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
