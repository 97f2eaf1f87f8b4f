"""UpdateFeatures, ElectLeaders and ListPartitionReassignments, on a cluster of one broker."""

from __future__ import annotations

from barnabas.protocol import ApiKey

from ..requests import versions
from ..talk import Talk, scenario

UPDATE, ELECT = ApiKey.UPDATE_FEATURES, ApiKey.ELECT_LEADERS
REASSIGNMENTS = ApiKey.LIST_PARTITION_REASSIGNMENTS
UPGRADE, SAFE, UNSAFE = 1, 2, 3
FEATURES = ("metadata.version", "kraft.version", "transaction.version", "group.version", "share.version",
            "streams.version", "eligible.leader.replicas.version", "no.such.version", "")  # fmt: skip


@scenario
def updates_are_checked(talk: Talk) -> None:
    for version in versions(UPDATE):
        for feature in FEATURES:
            levels = (-1, 0, 1, 2, 5, 100)
            for level in (*levels, 7, 28, 29, 30) if feature == "metadata.version" and version else levels:
                for how in (UPGRADE, SAFE, UNSAFE, 0, 4) if version else (UPGRADE, SAFE):
                    one = {"feature": feature, "max_version_level": level, "upgrade_type": how}
                    one["allow_downgrade"] = how != UPGRADE
                    if version == 0 and feature not in ("no.such.version", ""):
                        continue  # there is no validating only in this version
                    values = {"feature_updates": [one], "validate_only": True, "timeout_ms": 30_000}
                    answer = talk.silently(UPDATE, version, **values)
                    answer["said"] = answer.pop("error_message")
                    for each in answer.get("results") or []:
                        each["said"] = each.pop("error_message")
                    talk.note(f"v{version}: {feature} to {level} as {how}", answer)
        talk.ask("nothing", UPDATE, version, feature_updates=[], timeout_ms=30_000)
        for pair in (("group.version", "no.such.version"), ("group.version", "share.version")):
            if version:
                updates = [
                    {"feature": name, "max_version_level": 1, "upgrade_type": UPGRADE} for name in pair
                ]
                values = {"feature_updates": updates, "validate_only": True, "timeout_ms": 30_000}
                talk.ask(f"{pair}", UPDATE, version, **values)


@scenario
def elections(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    for version in versions(ELECT):
        for kind in (0, 1, 2, -1) if version else (0,):

            def ask(
                label: str, partitions: dict[str, list[int]], version: int = version, kind: int = kind
            ) -> None:
                asked = [{"topic": name, "partitions": found} for name, found in partitions.items()]
                talk.ask(f"{label}, type {kind}", ELECT, version,
                         election_type=kind, topic_partitions=asked, timeout_ms=30_000)  # fmt: skip

            ask("one", {topic: [0]})
            ask("both and one more", {topic: [0, 1, 2]})
            ask("unknown topic", {talk.name("missing"): [0]})
            ask("bad name", {"not a name": [0]})
            ask("no partitions", {topic: []})
            ask("no topics", {})
        answer = talk.silently(ELECT, version, election_type=0, topic_partitions=None, timeout_ms=30_000)
        wrong = [each for found in answer["replica_election_results"] for each in found["partition_result"]]
        talk.note("all partitions", {"error_code": answer.get("error_code"), "results": wrong})


@scenario
def reassignments(talk: Talk) -> None:
    topic = talk.topic()
    for version in versions(REASSIGNMENTS):
        talk.ask("all", REASSIGNMENTS, version, topics=None)
        for label, name, partitions in (
            ("one", topic, [0]),
            ("a partition that is not there", topic, [7]),
            ("a topic that is not there", talk.name("missing"), [0]),
        ):
            asked = [{"name": name, "partition_indexes": partitions}]
            talk.ask(label, REASSIGNMENTS, version, topics=asked)
        talk.ask("no topics", REASSIGNMENTS, version, topics=[])
