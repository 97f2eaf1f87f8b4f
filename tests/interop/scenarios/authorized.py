"""Every API of a broker, asked by callers that may not: where the refusal stands, and what is left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.protocol import ApiKey
from barnabas.security.acls.vocabulary import Operation

from ..guarded_requests import (
    ASKED_ID,
    Asked,
    of_cluster,
    of_groups,
    of_offsets,
    of_partitions_added,
    of_topics,
    of_transactions,
)
from ..requests import batch, fetch, produce, versions
from ..rights import CLUSTER, GROUP, TOPIC, TRANSACTION, acl, grant, revoke
from ..talk import Talk, scenario


def ask_all(talk: Talk, who: str, asked: Iterator[Asked]) -> None:
    """The first and the last version of each API, and those between them where its form changes."""
    for api, label, values in asked:
        served = versions(api)
        for version in sorted({served.start, (served.start + served.stop) // 2, served.stop - 1}):
            talk.ask(f"{who} {label}".strip(), api, version, **known(api, version, values))


def known(api: ApiKey, version: int, values: dict[str, Any]) -> dict[str, Any]:
    """The values that this version of the request has."""
    from barnabas.protocol.apis import request_class

    fields = {field.name: field for field in request_class(api).schema.fields}
    return {name: value for name, value in values.items() if version in fields[name].versions}


@scenario
def nobody_does_anything_with_topics(talk: Talk) -> None:
    talk.become("admin")
    topic, missing = talk.topic("here"), talk.name("missing")
    talk.become("bob")
    for name in (topic, missing):
        ask_all(talk, f"bob, {name[-7:]}", of_topics(name))
        for version in versions(ApiKey.METADATA):
            talk.ask(name, ApiKey.METADATA, version, **metadata(version, name))
        for version in (1, 5):
            talk.ask(name, ApiKey.DELETE_TOPICS, version, topic_names=[name], timeout_ms=9000)
        talk.ask(name, ApiKey.DELETE_TOPICS, 6, topics=[{"name": name}], timeout_ms=9000)
        for version in versions(ApiKey.PRODUCE):
            if version < 13:
                talk.ask(name, ApiKey.PRODUCE, version, **produce(talk, name, batch(b"x")))
        for version in versions(ApiKey.FETCH):
            if version < 13:
                talk.ask(name, ApiKey.FETCH, version, **fetch(talk, {name: [{}]}))
    topic_id = talk.topic_ids[topic]
    for each, label in ((topic_id, "known id"), (ASKED_ID, "unknown id")):
        by_id = {"topics": [{"name": None, "topic_id": each}], "timeout_ms": 9000}
        talk.ask(label, ApiKey.DELETE_TOPICS, 6, **by_id)
        talk.ask(label, ApiKey.METADATA, 12, topics=[{"name": None, "topic_id": each}])
        talk.ask(label, ApiKey.PRODUCE, 13, **produce(talk, topic, batch(b"x"), topic_id=each))
        talk.ask(label, ApiKey.FETCH, 17, **fetch(talk, {topic: [{}]}, topic_ids={topic: each}))
    talk.ask("acks=0", ApiKey.PRODUCE, 9, **produce(talk, topic, batch(b"x"), acks=0))
    for version in versions(ApiKey.METADATA):
        if version:
            talk.ask("all topics", ApiKey.METADATA, version, topics=None)
    talk.ask("all", ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, topics=[], response_partition_limit=10)


def metadata(version: int, name: str) -> dict[str, Any]:
    asked: dict[str, Any] = {"topics": [{"name": name}]}
    if version >= 4:
        asked["allow_auto_topic_creation"] = True
    if version >= 8:
        asked["include_topic_authorized_operations"] = True
        if version <= 10:
            asked["include_cluster_authorized_operations"] = True
    return asked


@scenario
def nobody_does_anything_with_groups(talk: Talk) -> None:
    talk.become("admin")
    topic, group = talk.topic(), talk.name("group")
    talk.become("bob")
    ask_all(talk, "bob", of_groups(group, topic, talk.topic_ids[topic]))
    for version in versions(ApiKey.OFFSET_FETCH):
        asked = of_offsets(group, topic, talk.topic_ids[topic], version)
        talk.ask("bob", ApiKey.OFFSET_FETCH, version, **asked)
    for version in versions(ApiKey.FIND_COORDINATOR):
        for kind in (0, 1, 2):
            if not version and kind:
                continue
            asked = {"coordinator_keys": [group, "other"]} if version >= 4 else {"key": group}
            if version:
                asked["key_type"] = kind
            talk.ask(f"bob, type {kind}", ApiKey.FIND_COORDINATOR, version, **asked)
    for version in versions(ApiKey.LIST_GROUPS):
        talk.ask("bob", ApiKey.LIST_GROUPS, version)


@scenario
def nobody_does_anything_with_transactions(talk: Talk) -> None:
    talk.become("admin")
    topic, name = talk.topic(), talk.name("id")
    talk.become("bob")
    ask_all(talk, "bob", of_transactions(name, talk.name("group"), topic))
    for version in versions(ApiKey.ADD_PARTITIONS_TO_TXN):
        talk.ask("bob", ApiKey.ADD_PARTITIONS_TO_TXN, version, **of_partitions_added(name, [topic], version))
    for version in versions(ApiKey.INIT_PRODUCER_ID):
        if version < 6:
            talk.ask("no id", ApiKey.INIT_PRODUCER_ID, version, transactional_id=None)
    for version in versions(ApiKey.LIST_TRANSACTIONS):
        talk.ask("bob", ApiKey.LIST_TRANSACTIONS, version)
    records = batch(b"x", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    for version in (3, 9, 12):
        given = produce(talk, topic, records, transactional_id=name)
        talk.ask("bob", ApiKey.PRODUCE, version, **given)


@scenario
def nobody_keeps_share_state(talk: Talk) -> None:
    """Brokers do; one right on the cluster is needed for it, none on groups or topics."""
    talk.become("admin")
    topic = talk.topic(partitions=2)
    asked = {
        "group_id": talk.name("group"),
        "topics": [{"topic_id": talk.topic_ids[topic], "partitions": [{"partition": 0}, {"partition": 1}]}],
    }
    talk.become("bob")
    for api in (
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    ):
        for version in versions(api):
            talk.ask("bob", api, version, **asked)
            talk.ask("bob, nothing", api, version, group_id="", topics=[])


@scenario
def nobody_does_anything_with_the_cluster(talk: Talk) -> None:
    talk.become("admin")
    topic = talk.topic()
    talk.become("bob")
    ask_all(talk, "bob", of_cluster(topic))
    for version in versions(ApiKey.DESCRIBE_LOG_DIRS):
        talk.ask("bob", ApiKey.DESCRIBE_LOG_DIRS, version, topics=None)


@scenario
def some_topics_may_be_seen(talk: Talk) -> None:
    names = ("seen", "read", "written", "hidden")
    talk.become("admin")
    seen, read, written, hidden = (talk.topic(suffix) for suffix in names)
    missing = talk.name("missing")
    grant(
        talk,
        acl("alice", Operation.DESCRIBE, TOPIC, seen),
        acl("alice", Operation.READ, TOPIC, read),
        acl("alice", Operation.WRITE, TOPIC, written),
        acl("alice", Operation.DESCRIBE, TOPIC, missing),
    )
    talk.become("alice")
    everything = [seen, read, written, hidden, missing]
    for version in (1, 8, 9, 12, 13):
        asked = metadata(version, seen)
        asked["topics"] = [{"name": name} for name in everything]
        talk.ask("named", ApiKey.METADATA, version, **asked)
    asked = metadata(12, seen) | {"topics": None}
    shown = talk.silently(ApiKey.METADATA, 12, **asked)["topics"]
    for topic in sorted(shown, key=lambda each: str(each["name"])):
        if topic["name"].startswith(talk.prefix):
            talk.note(f"all: {topic['name']}", topic)
    ids = [{"name": None, "topic_id": talk.topic_ids[name]} for name in (seen, hidden)]
    talk.ask("ids", ApiKey.METADATA, 13, topics=ids)
    named = [{"name": name} for name in everything]
    talk.ask("named", ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, topics=named, response_partition_limit=10)
    talk.ask("a page", ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, topics=named, response_partition_limit=1)
    wanted = [{"name": name, "partitions": [{"timestamp": -1}]} for name in everything]
    for version in (1, 8):
        talk.ask("some", ApiKey.LIST_OFFSETS, version, topics=wanted)
    epochs = [{"topic": name, "partitions": [{"partition": 0}]} for name in everything]
    talk.ask("some", ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, topics=epochs)
    for name in everything:
        talk.ask(name, ApiKey.PRODUCE, 9, **produce(talk, name, batch(b"x")))
    several = produce(talk, written, batch(b"y"))
    several["topic_data"] += produce(talk, read, batch(b"y"))["topic_data"]
    talk.ask("two topics", ApiKey.PRODUCE, 9, **several)
    talk.ask("again", ApiKey.PRODUCE, 9, **produce(talk, written, batch(b"z")))
    by_id = fetch(talk, {name: [{}] for name in (seen, read, written, hidden)})
    talk.ask("by id", ApiKey.FETCH, 17, **by_id)
    talk.ask("by name", ApiKey.FETCH, 12, **fetch(talk, {name: [{}] for name in everything}))
    producers = [{"name": name, "partition_indexes": [0]} for name in (read, hidden, "not valid!")]
    talk.ask("some", ApiKey.DESCRIBE_PRODUCERS, 0, topics=producers)
    talk.ask("a follower", ApiKey.FETCH, 12, **fetch(talk, {read: [{}]}, replica_id=1))


@scenario
def a_right_that_is_lost_bites_at_the_next_request(talk: Talk) -> None:
    talk.become("admin")
    topic = talk.topic()
    may_read = acl("alice", Operation.READ, TOPIC, topic)
    may_write = acl("alice", Operation.WRITE, TOPIC, topic)
    grant(talk, may_read, may_write)
    alice = Talk(talk.port, talk.prefix)
    alice.become("alice")
    alice.topic_ids = talk.topic_ids
    alice.transcript = talk.transcript
    try:
        for _ in range(3):
            alice.ask("allowed", ApiKey.PRODUCE, 9, **produce(alice, topic, batch(b"x")))
        session = alice.ask("opens", ApiKey.FETCH, 12, **fetch(alice, {topic: [{}]}, session_epoch=0))
        session_id = session["session_id"]
        assert session_id, session
        revoke(talk, may_read, may_write)
        alice.ask("refused", ApiKey.PRODUCE, 9, **produce(alice, topic, batch(b"x")))
        again = fetch(alice, {}, session_id=session_id, session_epoch=1)
        alice.ask("refused in its session", ApiKey.FETCH, 12, **again)
        grant(talk, may_read, may_write)
        alice.ask("allowed again", ApiKey.PRODUCE, 9, **produce(alice, topic, batch(b"x")))
        again = fetch(alice, {}, session_id=session_id, session_epoch=2)
        alice.ask("allowed in its session", ApiKey.FETCH, 12, **again)
    finally:
        alice.close()


@scenario
def topics_are_created_and_deleted_by_right(talk: Talk) -> None:
    talk.become("admin")
    old, deletable, seen = talk.topic("old"), talk.topic("deletable"), talk.topic("seen")
    fresh = talk.name("fresh-")
    grant(
        talk,
        acl("alice", Operation.CREATE, TOPIC, fresh, prefixed=True),
        acl("alice", Operation.DESCRIBE_CONFIGS, TOPIC, fresh + "2"),
        acl("alice", Operation.DELETE, TOPIC, deletable),
        acl("alice", Operation.DESCRIBE, TOPIC, seen),
        acl("alice", Operation.DESCRIBE, TOPIC, talk.name("missing")),
        acl("carol", Operation.CREATE, CLUSTER),
    )
    talk.become("alice")

    def wanted(*names: str) -> dict[str, Any]:
        topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
        return {"topics": topics, "validate_only": True, "timeout_ms": 9000}

    for version in (4, 5, 7):
        asked = wanted(fresh + "1", fresh + "2", talk.name("other"), old)
        answer = talk.silently(ApiKey.CREATE_TOPICS, version, **asked)
        for topic in answer["topics"]:
            topic["configs"] = bool(topic.get("configs"))
        talk.note(f"created v{version}", answer)
    ids = {name: talk.topic_ids[name] for name in (deletable, seen, old)}
    names = [{"name": name} for name in (seen, old, talk.name("missing"), talk.name("unseen"))]
    talk.ask("by name", ApiKey.DELETE_TOPICS, 6, topics=names, timeout_ms=9000)
    talk.ask("names", ApiKey.DELETE_TOPICS, 5, topic_names=[each["name"] for each in names], timeout_ms=9000)
    by_id = [{"name": None, "topic_id": ids[name]} for name in (seen, old)]
    by_id += [{"name": None, "topic_id": ASKED_ID}, {"name": deletable}]
    talk.ask("by id", ApiKey.DELETE_TOPICS, 6, topics=by_id, timeout_ms=9000)
    talk.become("carol")
    answer = talk.silently(ApiKey.CREATE_TOPICS, 7, **wanted(fresh + "3"))
    for topic in answer["topics"]:
        topic["configs"] = bool(topic.get("configs"))
    talk.note("created by right on the cluster", answer)
    revoke(talk, acl("carol", Operation.CREATE, CLUSTER))  # scenarios share the cluster


@scenario
def groups_and_offsets_by_right(talk: Talk) -> None:
    talk.become("admin")
    seen, hidden = talk.topic("seen"), talk.topic("hidden")
    group, other = talk.name("group"), talk.name("other")

    def committed(*names: str) -> dict[str, Any]:
        topics = [
            {"name": name, "topic_id": talk.topic_ids[name], "partitions": [{"committed_offset": 1}]}
            for name in names
        ]
        return {"group_id": group, "topics": topics, "generation_id_or_member_epoch": -1, "member_id": ""}

    talk.silently(ApiKey.FIND_COORDINATOR, 4, coordinator_keys=[group])
    wait_for_coordinator(talk, group)
    for name in (group, other):
        talk.silently(ApiKey.OFFSET_COMMIT, 9, **committed(seen, hidden) | {"group_id": name})
    grant(
        talk,
        acl("alice", Operation.READ, GROUP, group),
        acl("alice", Operation.READ, TOPIC, seen),
        acl("carol", Operation.DESCRIBE, GROUP, group),
        acl("carol", Operation.DELETE, GROUP, group),
    )
    for user in ("alice", "carol"):
        talk.become(user)
        for version in (2, 9, 10):
            talk.ask(user, ApiKey.OFFSET_COMMIT, version, **committed(seen, hidden))
        for version in versions(ApiKey.OFFSET_FETCH):
            topics = [
                {"name": name, "topic_id": talk.topic_ids[name], "partition_indexes": [0]}
                for name in (seen, hidden)
            ]
            if version >= 8:
                groups = [{"group_id": group, "topics": topics}, {"group_id": other, "topics": topics}]
                talk.ask(f"{user}, named", ApiKey.OFFSET_FETCH, version, groups=groups)
                groups = [{"group_id": group, "topics": None}]
                talk.ask(f"{user}, all", ApiKey.OFFSET_FETCH, version, groups=groups)
            else:
                plain = [{"name": name, "partition_indexes": [0]} for name in (seen, hidden)]
                talk.ask(f"{user}, named", ApiKey.OFFSET_FETCH, version, group_id=group, topics=plain)
                if version >= 2:
                    talk.ask(f"{user}, all", ApiKey.OFFSET_FETCH, version, group_id=group, topics=None)
        talk.ask(user, ApiKey.FIND_COORDINATOR, 4, coordinator_keys=[group, other])
        answer = talk.silently(ApiKey.LIST_GROUPS, 4)
        talk.note(f"{user} lists", [each for each in answer["groups"] if talk.prefix in each["group_id"]])
        both = {"groups": [group, other], "include_authorized_operations": True}
        talk.ask(user, ApiKey.DESCRIBE_GROUPS, 5, **both)
        ids = {"group_ids": [group, other], "include_authorized_operations": True}
        talk.ask(user, ApiKey.CONSUMER_GROUP_DESCRIBE, 0, **ids)
        topics = [{"name": name, "partitions": [{"partition_index": 0}]} for name in (seen, hidden)]
        talk.ask(user, ApiKey.OFFSET_DELETE, 0, group_id=group, topics=topics)
        for names in ([seen], [seen, hidden]):
            joins = {"group_id": talk.name("new"), "member_id": "", "member_epoch": 0}
            joins |= {"subscribed_topic_names": names, "rebalance_timeout_ms": 9000, "topic_partitions": []}
            talk.ask(f"{user} joins {len(names)}", ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, **joins)
    grant(talk, acl("bob", Operation.DESCRIBE, CLUSTER))
    talk.become("bob")
    answer = talk.silently(ApiKey.LIST_GROUPS, 4)
    talk.note("bob lists all", [each for each in answer["groups"] if talk.prefix in each["group_id"]])
    talk.ask("bits", ApiKey.DESCRIBE_CLUSTER, 1, include_cluster_authorized_operations=True)
    revoke(talk, acl("bob", Operation.DESCRIBE, CLUSTER))


def wait_for_coordinator(talk: Talk, group: str) -> None:
    while True:
        asked = {"group_id": group, "topics": []}
        if talk.silently(ApiKey.OFFSET_FETCH, 7, **asked)["error_code"] == "NONE":
            return
        talk.silently(ApiKey.FIND_COORDINATOR, 4, coordinator_keys=[group])


@scenario
def transactions_by_right(talk: Talk) -> None:
    talk.become("admin")
    written, hidden = talk.topic("written"), talk.topic("hidden")
    name, other = talk.name("id"), talk.name("other")
    grant(
        talk,
        acl("alice", Operation.WRITE, TRANSACTION, name),
        acl("alice", Operation.WRITE, TOPIC, written),
        acl("carol", Operation.DESCRIBE, TRANSACTION, name),
    )
    talk.become("alice")
    while (
        started := talk.silently(
            ApiKey.INIT_PRODUCER_ID, 4, transactional_id=name, transaction_timeout_ms=9000
        )
    )["error_code"] != "NONE":
        talk.silently(ApiKey.FIND_COORDINATOR, 4, key_type=1, coordinator_keys=[name])
    talk.note("begins", started)
    mine = {
        "v3_and_below_transactional_id": name,
        "v3_and_below_producer_id": started["producer_id"],
        "v3_and_below_producer_epoch": started["producer_epoch"],
    }
    for topics in ([written, hidden], [written, talk.name("missing")], ["__consumer_offsets"], [written]):
        added = [{"name": topic, "partitions": [0]} for topic in topics]
        talk.ask(f"adds {len(topics)}", ApiKey.ADD_PARTITIONS_TO_TXN, 3, **mine, v3_and_below_topics=added)
    producer = {"producer_id": started["producer_id"], "producer_epoch": started["producer_epoch"]}
    offsets = {"transactional_id": name, "group_id": talk.name("group"), **producer}
    talk.ask("offsets of a group", ApiKey.ADD_OFFSETS_TO_TXN, 3, **offsets)
    records = batch(b"x", base_sequence=0, transactional=True, **producer)
    for topic, transactional_id in ((hidden, name), (written, other)):
        given = produce(talk, topic, records, transactional_id=transactional_id)
        talk.ask(f"{topic} as {transactional_id}", ApiKey.PRODUCE, 9, **given)
    talk.ask("of another", ApiKey.END_TXN, 3, transactional_id=other, committed=True, **producer)
    talk.ask("no id, any topic", ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None)
    ids = {"transactional_ids": [name, other]}
    talk.ask("alice", ApiKey.DESCRIBE_TRANSACTIONS, 0, **ids)
    talk.become("carol")
    talk.ask("carol sees no topics", ApiKey.DESCRIBE_TRANSACTIONS, 0, **ids)
    listed = talk.silently(ApiKey.LIST_TRANSACTIONS, 0)
    mine_listed = [each for each in listed["transaction_states"] if talk.prefix in each["transactional_id"]]
    talk.note("carol lists", mine_listed)
    talk.ask("carol", ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None)
    talk.become("alice")
    talk.ask("ends", ApiKey.END_TXN, 3, transactional_id=name, committed=True, **producer)


@scenario
def topics_are_created_on_demand_by_right(talk: Talk) -> None:
    names = {suffix: talk.name(suffix) for suffix in ("creatable", "seen", "hidden")}
    grant(
        talk,
        acl("alice", Operation.CREATE, TOPIC, names["creatable"]),
        acl("alice", Operation.DESCRIBE, TOPIC, names["creatable"]),
        acl("alice", Operation.DESCRIBE, TOPIC, names["seen"]),
        acl("alice", Operation.CREATE, TOPIC, names["hidden"]),
    )
    talk.become("alice")
    for version in (1, 4, 9, 12):
        for creates in (True, False):
            if not creates and version < 4:
                continue
            allowing = {"allow_auto_topic_creation": creates} if version >= 4 else {}
            for suffix in ("seen", "hidden"):
                asked = [{"name": names[suffix]}]
                talk.ask(f"{suffix} {creates}", ApiKey.METADATA, version, topics=asked, **allowing)
    asked = [{"name": names["creatable"]}]
    talk.ask("creatable", ApiKey.METADATA, 9, topics=asked, allow_auto_topic_creation=True)
    talk.become("admin")
    while talk.silently(ApiKey.METADATA, 9, topics=asked)["topics"][0]["error_code"] != "NONE":
        pass


@scenario
def an_expression_finds_the_topics_that_may_be_seen(talk: Talk) -> None:
    talk.become("admin")
    seen, _ = talk.topic("seen"), talk.topic("hidden")
    group = talk.name("group")
    grant(talk, acl("alice", Operation.READ, GROUP, group), acl("alice", Operation.DESCRIBE, TOPIC, seen))
    wait_for_coordinator(talk, group)
    talk.become("alice")
    heartbeat: dict[str, Any] = {"group_id": group, "member_id": "AAAAAAAAAAAAAAAAAAAAAA", "member_epoch": 0}
    first = {"rebalance_timeout_ms": 9000, "topic_partitions": []}
    first["subscribed_topic_regex"] = talk.prefix.replace(".", "[.]") + ".*"
    first["subscribed_topic_names"] = []
    answer = talk.silently(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **heartbeat, **first)
    assert answer["error_code"] == "NONE", answer
    while not (answer["assignment"] or {}).get("topic_partitions"):
        heartbeat["member_epoch"] = answer["member_epoch"]
        answer = talk.silently(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **heartbeat)
        assert answer["error_code"] == "NONE", answer
    talk.note("assigned", answer["assignment"])
    leaves = heartbeat | {"member_epoch": -1}
    talk.ask("leaves", ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **leaves)
