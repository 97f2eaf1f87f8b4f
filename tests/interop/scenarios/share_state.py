"""The state of share partitions, as brokers keep it at the share coordinator."""

from __future__ import annotations

import random
import time
from typing import Any

from barnabas.protocol import NULL_UUID, ApiKey, uuid

from ..requests import versions
from ..talk import Talk, scenario

FIND = ApiKey.FIND_COORDINATOR
INITIALIZE = ApiKey.INITIALIZE_SHARE_GROUP_STATE
READ = ApiKey.READ_SHARE_GROUP_STATE
WRITE = ApiKey.WRITE_SHARE_GROUP_STATE
DELETE = ApiKey.DELETE_SHARE_GROUP_STATE
SUMMARY = ApiKey.READ_SHARE_GROUP_STATE_SUMMARY
ALL = (INITIALIZE, READ, WRITE, DELETE, SUMMARY)
SHARE = 2
STATE_TOPIC = "__share_group_state"
READY_TIMEOUT_S = 30.0
NOT_READY = {
    "NOT_COORDINATOR",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "UNKNOWN_TOPIC_OR_PARTITION",  # Apache Kafka's coordinator learns of topics a little later than others
}


class ShareTalk:
    """Asks about the partitions of one topic, for one group."""

    def __init__(self, talk: Talk, partitions: int = 3) -> None:
        self.talk = talk
        self.group = talk.name("group")
        self.topic = talk.topic(partitions=partitions)
        self.topic_id = talk.topic_ids[self.topic]
        self._wait_for_coordinator()

    def _wait_for_coordinator(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while True:
            keys = [f"{self.group}:{uuid.to_text(self.topic_id)}:0"]
            found = self.talk.silently(FIND, 6, key_type=SHARE, coordinator_keys=keys)["coordinators"]
            if found[0]["error_code"] not in NOT_READY:
                answer = self.talk.silently(SUMMARY, 1, **self.request(0))
                if answer["results"][0]["partitions"][0]["error_code"] not in NOT_READY:
                    return
            assert time.monotonic() < deadline, found

    def request(self, *partitions: int, **data: Any) -> dict[str, Any]:
        parts = [{"partition": each} | data for each in partitions]
        return {"group_id": self.group, "topics": [{"topic_id": self.topic_id, "partitions": parts}]}

    def ask(self, label: str, api: ApiKey, version: int, *partitions: int, **data: Any) -> None:
        self.talk.ask(label, api, version, **self.request(*partitions or (0,), **data))

    def initialize(self, label: str, *partitions: int, epoch: int = 1, start: int = 0) -> None:
        self.ask(label, INITIALIZE, 0, *partitions, state_epoch=epoch, start_offset=start)

    def write(
        self,
        label: str,
        start: int,
        *batches: tuple[int, int, int, int],
        epochs: tuple[int, int] = (1, 0),
        complete: int = 0,
        version: int = 1,
    ) -> None:
        parts = [
            dict(zip(("first_offset", "last_offset", "delivery_state", "delivery_count"), each, strict=True))
            for each in batches
        ]
        self.ask(
            label,
            WRITE,
            version,
            state_epoch=epochs[0],
            leader_epoch=epochs[1],
            start_offset=start,
            delivery_complete_count=complete,
            state_batches=parts,
        )

    def show(self, label: str, *partitions: int, epoch: int = -1) -> None:
        self.ask(label, READ, 0, *partitions, leader_epoch=epoch)
        for version in versions(SUMMARY):
            self.ask(label, SUMMARY, version, *partitions, leader_epoch=epoch)


@scenario
def finding_a_coordinator(talk: Talk) -> None:
    share = ShareTalk(talk)
    topic_id = uuid.to_text(share.topic_id)
    for label, key in {
        "a share partition": f"{share.group}:{topic_id}:0",
        "a group with colons": f"a:b::c:{topic_id}:0",
        "a partition that is not there": f"{share.group}:{topic_id}:99",
        "a negative partition": f"{share.group}:{topic_id}:-1",
        "no partition": f"{share.group}:{topic_id}:",
        "no group": f":{topic_id}:0",
        "a group of blanks": f"  :{topic_id}:0",
        "no topic": f"{share.group}::0",
        "a topic by name": f"{share.group}:{share.topic}:0",
        "a partition that is no number": f"{share.group}:{topic_id}:x",
        "only a group": share.group,
        "nothing": "",
    }.items():
        answer = talk.silently(FIND, 6, key_type=SHARE, coordinator_keys=[key])
        for found in answer["coordinators"]:
            del found["key"]  # which holds the id of a topic
        talk.note(label, answer)


@scenario
def the_topic_of_the_coordinator(talk: Talk) -> None:
    ShareTalk(talk)
    resource = {"resource_type": 2, "resource_name": STATE_TOPIC}
    [described] = talk.silently(ApiKey.DESCRIBE_CONFIGS, 4, resources=[resource])["results"]
    own = {each["name"]: each["value"] for each in described["configs"] if each["config_source"] == 1}
    talk.note("configs", own)
    [topic] = talk.silently(ApiKey.METADATA, 12, topics=[{"name": STATE_TOPIC}])["topics"]
    talk.note("internal", topic["is_internal"])


@scenario
def the_life_of_a_state(talk: Talk) -> None:
    share = ShareTalk(talk)
    for version in versions(SUMMARY):
        share.ask("before it begins", SUMMARY, version, 0, 1, 2, leader_epoch=0)
    share.ask("before it begins", READ, 0, leader_epoch=0)
    share.write("before it begins", 0)
    share.ask("before it begins", DELETE, 0, 0, 1)
    share.initialize("three partitions", 0, 1, 2, start=-1)
    share.show("begun without a start offset", 0, 1, 2)
    for version in versions(WRITE):
        share.write("the first write", 10, (10, 19, 0, 1), (30, 39, 2, 1), complete=7, version=version)
        share.show("written")
    share.write("a write without a start offset", -1, (40, 49, 4, 1), complete=8)
    share.show("written again")
    share.write("a start offset that was passed", 5, complete=9)
    share.show("with an earlier start offset")
    share.write("no batches", 35, complete=-1)
    share.show("with a later start offset")
    share.initialize("begun again", start=100, epoch=2)
    share.show("begun again")
    share.ask("some", DELETE, 0, 0, 2)
    share.ask("the same again", DELETE, 0, 0, 2)
    share.show("deleted", 0, 1, 2)
    share.initialize("begun after it was deleted", epoch=0, start=3)
    share.show("begun after it was deleted")


@scenario
def epochs_fence(talk: Talk) -> None:
    share = ShareTalk(talk)
    share.initialize("state epoch 5", epoch=5)
    share.initialize("state epoch 4", epoch=4)
    share.initialize("no state epoch", epoch=-1)
    share.show("after no state epoch")
    share.initialize("state epoch 5 again", epoch=5)
    share.initialize("state epoch 6", epoch=6)
    for state_epoch in (5, 6, 7, -1):
        share.write(f"state epoch {state_epoch}", 1, epochs=(state_epoch, 0))
    share.show("after writes")
    share.show("a new leader", epoch=3)
    share.show("the old leader", epoch=2)
    for leader_epoch in (2, 3, 4, -1):
        share.write(f"leader epoch {leader_epoch}", 2, epochs=(6, leader_epoch))
        share.show(f"after leader epoch {leader_epoch}")
    share.show("the leader that wrote", epoch=4)
    share.write("the leader before it", 2, epochs=(6, 3))
    share.initialize("state epoch 7", epoch=7)
    share.show("begun again")
    share.write("the leader before, of another epoch", 2, epochs=(7, 3))
    share.write("both are too old", 2, epochs=(6, 3))


@scenario
def batches_are_combined(talk: Talk) -> None:
    share = ShareTalk(talk)
    rng = random.Random(932)
    share.initialize("begins")
    start = 0
    for number in range(60):
        batches = []
        for _ in range(rng.choice((1, 1, 2, 4))):
            first = start + rng.randrange(-5, 60)
            batches.append((first, first + rng.randrange(15), rng.choice((0, 2, 4)), rng.randrange(1, 4)))
        if rng.random() < 0.2:
            start += rng.randrange(8)
        share.write(f"write {number}", rng.choice((start, start, -1)), *batches)
        share.ask(f"after write {number}", READ, 0, leader_epoch=-1)


@scenario
def requests_that_name_nothing(talk: Talk) -> None:
    share = ShareTalk(talk)
    share.initialize("begins", 0, 1)
    for api in ALL:
        version = versions(api)[-1]
        whole = share.request(0)
        talk.ask("no group", api, version, **whole | {"group_id": ""})
        talk.ask("no topics", api, version, **whole | {"topics": []})
        nothing = {"topic_id": share.topic_id, "partitions": []}
        talk.ask("no partitions", api, version, **whole | {"topics": [nothing]})
        talk.ask(
            "no partitions of a second topic",
            api,
            version,
            **whole | {"topics": [*whole["topics"], {"topic_id": NULL_UUID, "partitions": []}]},
        )


@scenario
def topics_and_partitions_that_are_not_there(talk: Talk) -> None:
    share = ShareTalk(talk)
    share.initialize("begins", 0, 1, 2)
    other = bytes(range(16))
    for api in ALL:
        version = versions(api)[-1]
        for label, topic_id, partition in (
            ("a partition too many", share.topic_id, 3),
            ("a negative partition", share.topic_id, -1),
            ("another topic", other, 0),
            ("the null id", NULL_UUID, 0),
        ):
            topics = [{"topic_id": topic_id, "partitions": [{"partition": partition}]}]
            talk.ask(label, api, version, group_id=share.group, topics=topics)
        mixed = share.request(1, 3, -1)
        mixed["topics"].append({"topic_id": other, "partitions": [{"partition": 0}]})
        talk.ask("good ones and bad ones", api, version, **mixed)
        talk.ask("the same partition twice", api, version, **share.request(1, 1))
        twice = share.request(1)
        twice["topics"].append({"topic_id": share.topic_id, "partitions": [{"partition": 2}]})
        talk.ask("the same topic twice", api, version, **twice)


@scenario
def odd_batches(talk: Talk) -> None:
    share = ShareTalk(talk)
    share.initialize("begins", start=10)
    share.write("unknown states", 10, (10, 10, 1, 1), (11, 11, 3, 1), (12, 12, 9, 1), (13, 13, -1, 1))
    share.show("unknown states")
    share.write("negative counts", 10, (20, 24, 0, -1), (22, 22, 0, 0))
    share.show("negative counts")
    share.write("negative offsets", 10, (-9, -5, 0, 1), (-3, 14, 2, 5))
    share.show("negative offsets")
    share.write("a batch that ends before it begins", 10, (30, 29, 0, 1))


@scenario
def state_goes_with_its_topic(talk: Talk) -> None:
    share = ShareTalk(talk)
    share.initialize("begins", 0, 1, 2)
    share.write("something", 5, (7, 8, 2, 1))
    talk.silently(ApiKey.DELETE_TOPICS, 6, topics=[{"name": share.topic}], timeout_ms=30_000)
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        answer = talk.silently(SUMMARY, 1, **share.request(0))
        if answer["results"][0]["partitions"][0]["error_code"] == "UNKNOWN_TOPIC_OR_PARTITION":
            break
        assert time.monotonic() < deadline, answer
    for api in ALL:
        share.ask("of a deleted topic", api, versions(api)[-1], 0, 1)
