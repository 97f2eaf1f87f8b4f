"""Members of streams groups in a conversation: topologies, heartbeats, and what members run.

In: a `Talk` to write to. Out: the same requests with every broker; who gets which task is compared too.
Does not know: which broker it talks to, what the answers should be.
"""

from __future__ import annotations

import time
from typing import Any

from barnabas.protocol import ApiKey

from .members import group
from .talk import Talk

BEAT, DESCRIBE = ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE
GROUP_RESOURCE = 32
READY_TIMEOUT_S = 25.0
PAUSE_S = 0.05
TOLD = ("active_tasks", "standby_tasks", "warmup_tasks")


def topic_info(name: str, partitions: int = 0, **configs: str) -> dict[str, Any]:
    pairs = [{"key": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return {"name": name, "partitions": partitions, "replication_factor": 0, "topic_configs": pairs}


def subtopology(
    number: str | int,
    sources: list[str],
    *,
    reads: list[dict[str, Any]] | None = None,
    writes: list[str] | None = None,
    stores: list[dict[str, Any]] | None = None,
    together: list[tuple[list[int], list[int]]] | None = None,
) -> dict[str, Any]:
    """`reads` and `writes` are repartition topics, `together` the positions of copartitioned topics."""
    return {
        "subtopology_id": str(number),
        "source_topics": sources,
        "repartition_source_topics": reads or [],
        "repartition_sink_topics": writes or [],
        "state_changelog_topics": stores or [],
        "copartition_groups": [
            {"source_topics": some, "repartition_source_topics": others} for some, others in together or []
        ],
    }


def simple(*sources: str, epoch: int = 0) -> dict[str, Any]:
    """A topology of one subtopology without state."""
    return {"epoch": epoch, "subtopologies": [subtopology(0, list(sources))]}


def word_count(talk: Talk, source: str, epoch: int = 0) -> dict[str, Any]:
    """A topology with a repartition topic and a store."""
    words = topic_info(talk.name("words"), cleanup_policy="delete", retention_ms="-1")
    counts = topic_info(talk.name("counts"), cleanup_policy="compact")
    return {
        "epoch": epoch,
        "subtopologies": [
            subtopology(0, [source], writes=[words["name"]]),
            subtopology(1, [], reads=[words], stores=[counts]),
        ],
    }


def streams_group(talk: Talk, suffix: str = "group", **settings: str) -> str:
    """A group whose first assignment does not wait for other members, unless `settings` say so."""
    name = group(talk, suffix)
    wanted = {"initial_rebalance_delay_ms": "0", "assignment_interval_ms": "0", **settings}
    configs = [
        {"name": f"streams.{key.replace('_', '.')}", "config_operation": 0, "value": value}
        for key, value in wanted.items()
    ]
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": name, "configs": configs}
    answer = talk.silently(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    assert answer["responses"][0]["error_code"] == "NONE", answer
    wait_until_ready(talk)
    return name


def wait_until_ready(talk: Talk) -> None:
    """A broker may serve a new topic a moment before its groups know of it: another group is asked first."""
    sources = list(talk.topic_ids)
    deadline = time.monotonic() + READY_TIMEOUT_S
    attempt = 0
    while sources:
        attempt += 1
        probe: dict[str, Any] = {"group_id": talk.name(f"probe-{attempt}"), "member_id": "probe"}
        answer = talk.silently(BEAT, 0, **probe, **joining(simple(*sources)))
        talk.silently(BEAT, 0, **probe, member_epoch=-1)
        talk.silently(ApiKey.DELETE_GROUPS, 2, groups_names=[probe["group_id"]])
        if not any(status["status_code"] == 1 for status in answer["status"] or ()):
            return
        assert time.monotonic() < deadline, answer
        time.sleep(PAUSE_S)


def joining(topology: dict[str, Any] | None, **fields: Any) -> dict[str, Any]:
    ordinary: dict[str, Any] = {
        "member_epoch": 0,
        "endpoint_information_epoch": -1,
        "rebalance_timeout_ms": 30_000,
        "topology": topology,
        "process_id": "process",
        "client_tags": [],
        **{role: [] for role in TOLD},
    }
    return ordinary | fields


class StreamsMember:
    """A thread of an application. `epoch` and `tasks` are what the broker last told it."""

    def __init__(self, talk: Talk, name: str, label: str, topology: dict[str, Any], **fields: Any) -> None:
        self.talk, self.name, self.label = talk, name, label
        self.id = label
        self.epoch = 0
        self.topology = topology
        self.fields = {"process_id": f"process of {label}", **fields}
        self.tasks: dict[str, Any] = {role: [] for role in TOLD}

    def joins(self, what: str = "joins", **fields: Any) -> dict[str, Any]:
        self.tasks = {role: [] for role in TOLD}
        return self._ask(what, {**joining(self.topology), **self.fields, **fields})

    def beats(self, what: str = "beats", epoch: int | None = None, **fields: Any) -> dict[str, Any]:
        return self._ask(what, {"member_epoch": self.epoch if epoch is None else epoch, **fields})

    def reports(self, what: str = "reports its tasks", **fields: Any) -> dict[str, Any]:
        return self.beats(what, **self.tasks, **fields)

    def leaves(self, what: str = "leaves", **fields: Any) -> dict[str, Any]:
        answer = self.beats(what, -1, **fields)
        self.epoch = 0
        return answer

    def _ask(self, what: str, fields: dict[str, Any]) -> dict[str, Any]:
        answer = self.talk.ask(
            f"{self.label} {what}", BEAT, 0, group_id=self.name, member_id=self.id, **fields
        )
        self._learn(answer)
        if answer.get("error_message") is not None:
            self.talk.note(f"{self.label} {what}: why", {"message": answer["error_message"]})
        return answer

    def _learn(self, answer: dict[str, Any]) -> None:
        if answer["error_code"] == "NONE":
            self.epoch = answer["member_epoch"]
            for role in TOLD:
                if answer[role] is not None:
                    self.tasks[role] = answer[role]

    def silently(self, **fields: Any) -> dict[str, Any]:
        body = {"group_id": self.name, "member_id": self.id, "member_epoch": self.epoch, **fields}
        answer = self.talk.silently(BEAT, 0, **body)
        self._learn(answer)
        return answer

    def waits_for_topics(self) -> None:
        """Beats until the broker has created all internal topics; nothing is written down."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        answer = self.silently()
        while any(status["status_code"] == 3 for status in answer["status"] or ()):
            assert time.monotonic() < deadline, answer
            time.sleep(PAUSE_S)
            answer = self.silently()


def settle(*members: StreamsMember) -> None:
    """All beat and report what they run until nothing changes; then their tasks and epochs are noted."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    talk, name = members[0].talk, members[0].name
    while True:
        before = [(dict(member.tasks), member.epoch) for member in members]
        for member in members:
            answer = member.silently(**member.tasks)
            assert answer["error_code"] == "NONE", answer
        [found] = talk.silently(DESCRIBE, 0, group_ids=[name])["groups"]
        after = [(dict(member.tasks), member.epoch) for member in members]
        if before == after and found["group_state"] == "Stable":
            break
        assert time.monotonic() < deadline, (found, after)
        time.sleep(PAUSE_S)
    for member in members:
        talk.note(f"{member.label} settled", {"epoch": member.epoch, **member.tasks})
