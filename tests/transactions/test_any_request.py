"""Requests with arbitrary valid bytes: every one gets a response, and the log can be replayed."""

from __future__ import annotations

import random
from typing import Any

import pytest

from barnabas.protocol import Message
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.transactions.settings import TransactionSettings

from .host import Host, durable

REQUESTS = 1_500
NAMES = ("", "x", "y", "ü\0\n", "x" * 300)
LONGS = (-(2**63), -2, -1, 0, 1, 999, 1000, 1001, 1002, 2**63 - 1)
SHORTS = (-(2**15), -2, -1, 0, 1, 2, 3, 32765, 32766, 32767)
INTS = (-(2**31), -1, 0, 1, 2, 1_000, 900_000, 2**31 - 1)
TOPICS = ("t", "u", "", "nowhere", "__consumer_offsets", "__transaction_state", "ü" * 100)
PATTERNS = (None, "", ".*", "(", "x|y", "[", "\\", "(a*)*" * 20, "ü", "a{1000}{1000}")
STATES = ("Ongoing", "Empty", "Dead", "", "ü", "PrepareCommit")


class Anything:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def topics(self, kind: Any) -> list[Any]:
        pick = self.rng.choice
        return [
            kind(name=pick(TOPICS), partitions=[pick((0, 0, 1, 2, *INTS)) for _ in range(pick((0, 1, 1, 3)))])
            for _ in range(pick((0, 1, 1, 1, 2)))
        ]

    def who(self, host: Host) -> dict[str, Any]:
        """Now and then a real producer."""
        pick = self.rng.choice
        if host.shard.transactions and self.rng.random() < 0.6:
            real = pick(list(host.shard.transactions.values()))
            return {
                "transactional_id": real.transactional_id,
                "producer_id": real.producer_id,
                "producer_epoch": max(-(2**15), min(2**15 - 1, real.producer_epoch + pick((0, 0, 0, 1, -1)))),
            }
        return {"transactional_id": pick(NAMES), "producer_id": pick(LONGS), "producer_epoch": pick(SHORTS)}

    def request(self, host: Host) -> tuple[Message, int]:
        pick, who = self.rng.choice, self.who(host)
        kind = pick(
            ("init", "init", "add", "add", "batch", "offsets", "end", "end", "end", "describe", "list")
        )
        if kind == "init":
            version = self.rng.randint(0, 6)
            if version < 3 or self.rng.random() < 0.5:
                who = {"transactional_id": who["transactional_id"]}
            timeout_ms = pick((1_000, 60_000, *INTS))
            flags = {
                "enable2_pc": pick((False, False, True)),
                "keep_prepared_txn": pick((False, False, True)),
            }
            if version < 6:
                flags = {}
            return InitProducerIdRequest(**who, transaction_timeout_ms=timeout_ms, **flags), version
        if kind == "add":
            old = {f"v3_and_below_{name}": value for name, value in who.items()}
            topics = self.topics(AddPartitionsToTxnRequest.AddPartitionsToTxnTopic)
            return AddPartitionsToTxnRequest(**old, v3_and_below_topics=topics), self.rng.randint(0, 3)
        if kind == "batch":
            one = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
            asked = [
                one(
                    **self.who(host),
                    verify_only=pick((True, False)),
                    topics=self.topics(AddPartitionsToTxnRequest.AddPartitionsToTxnTopic),
                )
                for _ in range(pick((0, 1, 1, 3)))
            ]
            return AddPartitionsToTxnRequest(transactions=asked), self.rng.randint(4, 5)
        if kind == "offsets":
            return AddOffsetsToTxnRequest(**who, group_id=pick(NAMES)), self.rng.randint(0, 4)
        if kind == "end":
            return EndTxnRequest(**who, committed=pick((True, False))), self.rng.randint(0, 5)
        if kind == "describe":
            return DescribeTransactionsRequest(
                transactional_ids=[pick(NAMES) for _ in range(pick((0, 1, 3)))]
            ), 0
        version = self.rng.randint(0, 2)
        request = ListTransactionsRequest(state_filters=[pick(STATES)] * pick((0, 0, 1, 2)))
        request.producer_id_filters = [pick(LONGS)] * pick((0, 0, 1))
        if version >= 1:
            request.duration_filter = pick(LONGS)
        if version >= 2:
            request.transactional_id_pattern = pick(PATTERNS)
        return request, version


@pytest.mark.parametrize("seed", range(6))
def test_every_request_gets_a_response(seed: int) -> None:
    anything = Anything(seed)
    settings = TransactionSettings(two_phase_commit_enabled=bool(seed % 2))
    host = Host(settings, {"t": 3, "u": 1}, transaction_version=seed % 3)
    for number in range(REQUESTS):
        host.ask(*anything.request(host))
        if number % 100 == 99:
            host.advance(20_000)
            assert durable(host.replayed()) == durable(host.shard)
            if number % 300 == 299:
                host.restart()
