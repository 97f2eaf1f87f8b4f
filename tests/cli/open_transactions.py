"""Transactions for tools to describe: real producers write them, and end them or leave them open.

`Transactions(bootstrap).write("id", "topic", [0, 1], end="commit")` writes one. Without `end` it stays open;
`close` drops its producer without ending it, like a crash.
"""

from typing import Any

TIMEOUT_MS = 600_000  # an open transaction outlives the test
FLUSH_S_MAX = 60.0


class Transactions:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._open: list[Any] = []

    def write(self, transactional_id: str, topic: str, partitions: list[int], end: str | None = None) -> None:
        from confluent_kafka import Producer

        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": TIMEOUT_MS,
            }
        )
        producer.init_transactions(FLUSH_S_MAX)
        producer.begin_transaction()
        for partition in partitions:
            producer.produce(topic, value=transactional_id, partition=partition)
        assert producer.flush(FLUSH_S_MAX) == 0
        if end == "commit":
            producer.commit_transaction(FLUSH_S_MAX)
        elif end == "abort":
            producer.abort_transaction(FLUSH_S_MAX)
        else:
            self._open.append(producer)

    def close(self) -> None:
        self._open.clear()
