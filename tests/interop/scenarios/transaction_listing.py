"""DescribeTransactions and ListTransactions."""

from __future__ import annotations

from typing import Any

from barnabas.protocol import ApiKey

from ..requests import versions
from ..talk import Talk, scenario
from ..transactional import Producer, transactional_id

DESCRIBE, LIST = ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.LIST_TRANSACTIONS


def three(talk: Talk) -> list[Producer]:
    """One that has just started, one in a transaction, one that has ended it."""
    topic = talk.topic(partitions=3)
    found = [Producer(talk, transactional_id(talk, each), each) for each in ("idle", "busy", "done")]
    for producer in found:
        producer.init()
    found[1].add("adds", {topic: [0, 2]})
    found[2].add("adds", {topic: [1]})
    found[2].end()
    return found


def listed(talk: Talk, what: str, version: int, **fields: Any) -> None:
    """Written down without those of other scenarios."""
    answer = talk.silently(LIST, version, **fields)
    own = [
        each
        for each in answer["transaction_states"]
        if each["transactional_id"].startswith(talk.prefix + ".")
    ]
    talk.note(f"LIST_TRANSACTIONS v{version}: {what}", answer | {"transaction_states": own})


@scenario
def described(talk: Talk) -> None:
    idle, busy, done = three(talk)
    names = [idle.name, busy.name, done.name]
    talk.ask("all", DESCRIBE, 0, transactional_ids=names)
    talk.ask("none", DESCRIBE, 0, transactional_ids=[])
    talk.ask("one twice", DESCRIBE, 0, transactional_ids=[busy.name, busy.name])
    talk.ask("unknown and empty", DESCRIBE, 0, transactional_ids=[talk.name("unknown"), "", idle.name])
    busy.end(commit=False)
    talk.ask("all at the end", DESCRIBE, 0, transactional_ids=names)


@scenario
def listed_by_everything(talk: Talk) -> None:
    idle, busy, done = three(talk)
    for version in versions(LIST):
        listed(talk, "all", version)
        for states in (
            ["Ongoing"],
            ["Empty", "CompleteCommit"],
            ["ongoing"],
            ["Nonsense", "Ongoing"],
            ["Dead"],
            [""],
        ):
            listed(talk, f"states {states}", version, state_filters=states)
        for who in ([idle], [busy, done]):
            ids = [each.producer_id for each in who]
            listed(talk, f"producers of {[each.label for each in who]}", version, producer_id_filters=ids)
            mixed = {"producer_id_filters": ids, "state_filters": ["Ongoing"]}
            listed(talk, f"ongoing of {[each.label for each in who]}", version, **mixed)
        listed(talk, "producer -1", version, producer_id_filters=[-1])
        if version >= 1:
            for duration_ms in (-1, -2, 0, 3_600_000):
                listed(talk, f"longer than {duration_ms} ms", version, duration_filter=duration_ms)
        if version >= 2:
            patterns = [
                None, "", ".*", ".*busy", "busy", ".*\\.(idle|done)", "(", "[", "*", "(?i).*BUSY", ".*\\p{L}",
                "a{1001}", "(?=x)", "x" * 300,
            ]  # fmt: skip
            for pattern in patterns:
                listed(talk, f"pattern {pattern}", version, transactional_id_pattern=pattern)
            both = {"transactional_id_pattern": ".*busy", "state_filters": ["Ongoing", "Other"]}
            listed(talk, "pattern and states", version, **both)
            listed(
                talk, "a bad pattern and bad states", version, **(both | {"transactional_id_pattern": "("})
            )
    busy.end()
