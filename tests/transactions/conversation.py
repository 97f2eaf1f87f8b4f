"""Turns commands of the transcripts into requests of producers, and their responses into lines.

In: `init as=a id=tx`, `add as=a partitions=t:0`, `end as=a commit=yes` and the like, for a side: our shard,
or a broker of Apache Kafka to compare with. Out: lines. Producer ids are shown as `p1`, in order of
appearance. A producer uses the id and epoch it was given; `epoch=-1` and the like override them.
"""

from __future__ import annotations

from typing import Any, Protocol

from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest

Words = dict[str, str]
VERSIONS = {"init": 5, "add": 3, "verify": 4, "offsets": 3, "end": 4, "describe": 0, "list": 2}
BUMPS_SINCE = 5  # of EndTxn


class Side(Protocol):
    """Serves the requests of a transcript."""

    def ask(self, client: str, request: Message, version: int) -> Message: ...


class Conversation:
    def __init__(self, side: Side) -> None:
        self.side = side
        self.names: dict[int, str] = {}
        self.ids: dict[str, int] = {"none": -1}
        self.own: dict[str, tuple[int, int]] = {}  # client -> producer id and epoch
        self.transactional: dict[str, str] = {}

    def answer(self, verb: str, words: Words) -> str:
        client = words.get("as", "admin")
        version = int(words.get("version", VERSIONS[verb]))
        if "id" in words:
            self.transactional[client] = words["id"]
        request = getattr(self, "request_" + verb)(client, words, version)
        answer = self.side.ask(client, request, version)
        return f"{client}: {getattr(self, 'show_' + verb)(client, answer, version)}"

    # Names

    def name(self, producer_id: int) -> str:
        if producer_id < 0:
            return "nobody"
        if producer_id not in self.names:
            self.names[producer_id] = f"p{len(self.names) + 1}"
            self.ids[self.names[producer_id]] = producer_id
        return self.names[producer_id]

    def producer(self, client: str, words: Words) -> tuple[int, int]:
        own_id, own_epoch = self.own.get(client, (-1, -1))
        given = words.get("producer")
        producer_id = own_id if given is None else self.ids.get(given, 987_654)
        epoch = words.get("epoch", str(own_epoch))
        return producer_id, own_epoch + int(epoch) if epoch[0] in "+-" and epoch != "-1" else int(epoch)

    def transactional_id(self, client: str) -> str:
        name = self.transactional.get(client, "tx")
        return "" if name == "empty" else name

    # Requests

    def request_init(self, client: str, words: Words, version: int) -> Message:
        given = "producer" in words or "epoch" in words or words.get("with") == "own"
        producer_id, epoch = self.producer(client, words) if given else (-1, -1)
        return InitProducerIdRequest(
            transactional_id=self.transactional_id(client),
            transaction_timeout_ms=int(words.get("timeout", 60_000)),
            producer_id=producer_id,
            producer_epoch=epoch,
            enable2_pc=words.get("two_phases") == "yes",
            keep_prepared_txn=words.get("keep") == "yes",
        )

    def request_add(self, client: str, words: Words, version: int) -> Message:
        return self.partitions(client, words, version, False)

    def request_verify(self, client: str, words: Words, version: int) -> Message:
        return self.partitions(client, words, version, True)

    def partitions(self, client: str, words: Words, version: int, verify_only: bool) -> Message:
        producer_id, epoch = self.producer(client, words)
        topics: dict[str, list[int]] = {}
        for text in words.get("partitions", "t:0").split(","):
            if text != "none":
                topic, partition = text.split(":")
                topics.setdefault(topic, []).append(int(partition))
        asked = [
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=numbers)
            for name, numbers in topics.items()
        ]
        name = self.transactional_id(client)
        if version < 4:
            return AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=asked,
            )
        one = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=producer_id,
            producer_epoch=epoch,
            verify_only=verify_only,
            topics=asked,
        )
        return AddPartitionsToTxnRequest(transactions=[one])

    def request_offsets(self, client: str, words: Words, version: int) -> Message:
        producer_id, epoch = self.producer(client, words)
        return AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id(client),
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id=words.get("group", "g"),
        )

    def request_end(self, client: str, words: Words, version: int) -> Message:
        producer_id, epoch = self.producer(client, words)
        return EndTxnRequest(
            transactional_id=self.transactional_id(client),
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=words.get("commit", "yes") == "yes",
        )

    def request_describe(self, client: str, words: Words, version: int) -> Message:
        names = words.get("ids", "tx").split(",")
        return DescribeTransactionsRequest(
            transactional_ids=["" if name == "empty" else name for name in names]
        )

    def request_list(self, client: str, words: Words, version: int) -> Message:
        states, producers = words.get("states"), words.get("producers")
        request = ListTransactionsRequest(
            state_filters=states.split(",") if states else [],
            producer_id_filters=[self.ids.get(name, 987_654) for name in producers.split(",")]
            if producers
            else [],
        )
        if version >= 1:
            request.duration_filter = int(words.get("longer", -1))
        if version >= 2:
            request.transactional_id_pattern = words.get("pattern")
        return request

    # Responses

    def show_init(self, client: str, answer: Any, version: int) -> str:
        if answer.error_code:
            assert (answer.producer_id, answer.producer_epoch) == (-1, -1)
            return error(answer.error_code)
        self.own[client] = (answer.producer_id, answer.producer_epoch)
        return f"{self.name(answer.producer_id)} epoch {answer.producer_epoch}"

    def show_add(self, client: str, answer: Any, version: int) -> str:
        topics = (
            [topic for each in answer.results_by_transaction for topic in each.topic_results]
            if version >= 4
            else answer.results_by_topic_v3_and_below
        )
        found = sorted(
            f"{topic.name}:{partition.partition_index} {error(partition.partition_error_code)}"
            for topic in topics
            for partition in topic.results_by_partition
        )
        return " ".join([*([error(answer.error_code)] if answer.error_code else []), *found]) or "nothing"

    show_verify = show_add

    def show_offsets(self, client: str, answer: Any, version: int) -> str:
        return error(answer.error_code)

    def show_end(self, client: str, answer: Any, version: int) -> str:
        if version < BUMPS_SINCE:
            return error(answer.error_code)
        if answer.error_code:
            assert (answer.producer_id, answer.producer_epoch) == (-1, -1)
            return error(answer.error_code)
        self.own[client] = (answer.producer_id, answer.producer_epoch)
        return f"ok, goes on as {self.name(answer.producer_id)} epoch {answer.producer_epoch}"

    def show_describe(self, client: str, answer: Any, version: int) -> str:
        return ", ".join(self.described(state) for state in answer.transaction_states)

    def described(self, state: Any) -> str:
        if state.error_code:
            return f"{state.transactional_id!r} {error(state.error_code)}"
        partitions = sorted(
            f"{topic.topic}:{number}" for topic in state.topics for number in topic.partitions
        )
        return (
            f"{state.transactional_id} {state.transaction_state} {self.name(state.producer_id)} "
            f"epoch {state.producer_epoch} timeout {state.transaction_timeout_ms} [{' '.join(partitions)}]"
            + (" never begun" if state.transaction_start_time_ms == -1 else "")
        )

    def show_list(self, client: str, answer: Any, version: int) -> str:
        found = sorted(
            f"{state.transactional_id} {state.transaction_state} {self.name(state.producer_id)}"
            for state in answer.transaction_states
        )
        unknown = [f"no state {name}" for name in sorted(answer.unknown_state_filters)]
        codes = [error(answer.error_code)] if answer.error_code else []
        return ", ".join([*codes, *found, *unknown]) or "nothing"


def error(code: int) -> str:
    return "ok" if code == 0 else ErrorCode(code).name
