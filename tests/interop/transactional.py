"""Transactional producers in a conversation with their coordinator: what they were given, what they ask.

In: a `Talk` to write to. Out: the same requests with every broker, whoever chose the producer ids.
Does not know: which broker it talks to, what the answers should be.
"""

from __future__ import annotations

import time
from typing import Any

from barnabas.protocol import ApiKey

from .talk import Talk

READY_TIMEOUT_S = 20.0
TRANSACTION = 1  # kind of coordinator
NOT_YET = (
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "NOT_COORDINATOR",
    "UNKNOWN_TOPIC_OR_PARTITION",
)
NEW_END = 5  # version of EndTxn: transaction version 2


def transactional_id(talk: Talk, suffix: str = "tx") -> str:
    """A name, once the coordinator is there to serve it and has producer ids."""
    name = talk.name(suffix)
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        talk.silently(ApiKey.FIND_COORDINATOR, 4, key_type=TRANSACTION, coordinator_keys=[name])
        found = talk.silently(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[name])
        ids = talk.silently(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout_ms=60_000)
        codes = {found["transaction_states"][0]["error_code"], ids["error_code"]}
        if not codes & set(NOT_YET):
            return name
        assert time.monotonic() < deadline, codes


class Producer:
    """Somebody with a transactional id; `producer_id` and `epoch` are what the broker last told them."""

    def __init__(self, talk: Talk, name: str, label: str = "producer") -> None:
        self.talk, self.name, self.label = talk, name, label
        self.producer_id = self.epoch = -1

    def who(self, **fields: Any) -> dict[str, Any]:
        own = {
            "transactional_id": self.name,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }
        return own | fields

    def init(self, what: str = "starts", version: int = 5, **fields: Any) -> dict[str, Any]:
        body = {"transactional_id": self.name, "transaction_timeout_ms": 60_000} | fields
        answer = self.talk.ask(f"{self.label} {what}", ApiKey.INIT_PRODUCER_ID, version, **body)
        if answer["error_code"] == "NONE":
            self.producer_id, self.epoch = answer["producer_id"], answer["producer_epoch"]
        elif answer["error_code"] == "CONCURRENT_TRANSACTIONS":
            self.wait_until_complete()
        return answer

    def recover(self, what: str = "recovers", version: int = 5, **fields: Any) -> dict[str, Any]:
        own = {"producer_id": self.producer_id, "producer_epoch": self.epoch}
        return self.init(what, version, **(own | fields))

    def add(self, what: str, topics: dict[str, list[int]], version: int = 3, **fields: Any) -> None:
        """By a client up to version 3, as brokers do it from 4 on."""
        wanted = [{"name": name, "partitions": partitions} for name, partitions in topics.items()]
        who = self.who(**fields)
        if version < 4:
            body = {
                "v3_and_below_transactional_id": who["transactional_id"],
                "v3_and_below_producer_id": who["producer_id"],
                "v3_and_below_producer_epoch": who["producer_epoch"],
                "v3_and_below_topics": wanted,
            }
        else:
            body = {"transactions": [who | {"topics": wanted}]}
        self.talk.ask(f"{self.label} {what}", ApiKey.ADD_PARTITIONS_TO_TXN, version, **body)

    def end(
        self, what: str = "commits", commit: bool = True, version: int = 4, **fields: Any
    ) -> dict[str, Any]:
        body = self.who(**fields) | {"committed": commit}
        answer = self.talk.ask(f"{self.label} {what}", ApiKey.END_TXN, version, **body)
        if answer["error_code"] == "NONE":
            if version >= NEW_END:
                self.producer_id, self.epoch = answer["producer_id"], answer["producer_epoch"]
            self.wait_until_complete()
        return answer

    def wait_until_complete(self) -> None:
        """Apache Kafka answers before the markers are written."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while self.state().startswith("Prepare"):
            assert time.monotonic() < deadline, f"{self.name} does not become complete"

    def state(self) -> str:
        answer = self.talk.silently(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[self.name])
        state: str = answer["transaction_states"][0]["transaction_state"]
        return state

    def wait_for_state(self, state: str) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while self.state() != state:
            assert time.monotonic() < deadline, f"{self.name} does not become {state}"

    def described(self, what: str = "is described") -> None:
        self.talk.ask(f"{self.label} {what}", ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[self.name])
