"""The streams protocol (KIP-1071): topics, topologies and requests that are wrong."""

from __future__ import annotations

import time
from typing import Any

from ..streams_members import (
    BEAT,
    DESCRIBE,
    StreamsMember,
    joining,
    simple,
    streams_group,
    subtopology,
    topic_info,
)
from ..talk import Talk, scenario
from .group_streams import described


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
