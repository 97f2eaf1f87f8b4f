"""Random histories: producers that forget, repeat and lie, late markers, crashes between any two steps.

A history is one seed. Producers of a few transactional ids send requests of all versions, some with the id or
epoch of others. Records are appended or lost, responses arrive or not, markers reach partitions in any order,
the shard crashes and is replayed, features are upgraded, time jumps. `Ledger` checks the invariants.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.transactions.outcome import Caller, Markers, TopicPartition, TransactionOutcome
from barnabas.transactions.records import decode, encode
from barnabas.transactions.settings import TransactionSettings
from barnabas.transactions.states import BEFORE, State
from barnabas.transactions.transaction import EPOCH_MAX_OF_CLIENTS

from .host import Host, durable

TOPICS = {"t": 3, "u": 2}
PARTITIONS = [TopicPartition(topic, number) for topic, count in TOPICS.items() for number in range(count)]
TRANSACTIONAL_IDS = ("x", "y", "z")
PRODUCERS = 5
TIMEOUTS_MS = (1_000, 30_000, 900_000)
SETTINGS = TransactionSettings(
    id_expiration_ms=3_000_000, id_expiration_check_interval_ms=600_000, two_phase_commit_enabled=True
)


class Violation(AssertionError):
    pass


@dataclass(slots=True)
class Producer:
    """The state of one client, as it believes."""

    transactional_id: str
    producer_id: int = -1
    epoch: int = -1
    grant: int = -1  # how many producers had its id before it
    is_open: bool = False


@dataclass(slots=True)
class Fate:
    """One transaction: how it must end, and which markers partitions got."""

    partitions: set[TopicPartition] = field(default_factory=set)
    is_commit: bool | None = None
    told: dict[TopicPartition, bool] = field(default_factory=dict)


class Ledger:
    """Checks records, responses and markers."""

    def __init__(self) -> None:
        self.state: dict[str, State] = {}
        self.owner: dict[str, tuple[int, int]] = {}  # producer id and epoch
        self.seen_ids: dict[int, str] = {}
        self.fate: dict[str, Fate] = {}
        self.grants: dict[str, int] = dict.fromkeys(TRANSACTIONAL_IDS, 0)
        self.partition_epochs: dict[tuple[TopicPartition, int], int] = {}
        self.commits = self.aborts = 0

    def check(self, is_true: bool, what: str) -> None:
        if not is_true:
            raise Violation(what)

    def saw_record(self, key: bytes, value_bytes: bytes | None) -> None:
        entry = decode(key, value_bytes)
        assert entry is not None
        name, value = entry.key.transactional_id, entry.value
        before = self.state.get(name)
        if value is None:
            self.check(before is not None and before in BEFORE[State.DEAD], f"{name} expired while {before}")
            del self.state[name], self.owner[name]
            self.fate.pop(name, None)
            return
        state = State(value.transaction_status)
        owner = (value.producer_id, value.producer_epoch)
        self.check(
            state is State.EMPTY if before is None else before in BEFORE[state],
            f"{name}: {before} to {state}",
        )
        self.check_owner(name, owner)
        self.owner[name] = owner
        self.check(value.producer_epoch >= 0, "an epoch below zero")
        partitions = {
            TopicPartition(topic.topic, number)
            for topic in value.transaction_partitions or ()
            for number in topic.partition_ids
        }
        if state is State.ONGOING:
            fate = self.fate.setdefault(name, Fate())
            self.check(fate.is_commit is None, f"{name} goes on after its end was prepared")
            self.check(fate.partitions <= partitions, f"{name} forgot partitions")
            fate.partitions = partitions
        elif state.is_prepared:
            fate = self.fate.setdefault(name, Fate())
            self.check(fate.is_commit is None, f"{name} is prepared twice")
            self.check(fate.partitions == partitions, f"{name} prepares other partitions than it has")
            fate.is_commit = state is State.PREPARE_COMMIT
        elif state.is_complete:
            fate = self.fate.pop(name)
            self.check(
                fate.is_commit is (state is State.COMPLETE_COMMIT), f"{name} ends otherwise than prepared"
            )
            self.check(set(fate.told) >= fate.partitions, f"{name} is complete without all its markers")
            self.commits += fate.is_commit is True
            self.aborts += fate.is_commit is False
        self.state[name] = state

    def check_owner(self, name: str, owner: tuple[int, int]) -> None:
        before = self.owner.get(name)
        if before is None or before[0] != owner[0]:
            self.check(owner[0] not in self.seen_ids, f"producer id {owner[0]} is used twice")
            self.seen_ids[owner[0]] = name
        else:
            self.check(owner[1] >= before[1], f"{name} goes back from epoch {before[1]} to {owner[1]}")

    def saw_marker(self, markers: Markers, partition: TopicPartition) -> None:
        """Note a marker on a partition (it may be repeated with a new coordinator epoch)."""
        fate = self.fate.get(markers.transactional_id)
        self.check(fate is not None and fate.is_commit is not None, "a marker of nothing that was prepared")
        assert fate is not None
        self.check(fate.is_commit is markers.is_commit, "a marker says otherwise than what was prepared")
        self.check(partition in fate.partitions, "a marker where nothing was written")
        self.check(fate.told.get(partition, markers.is_commit) is markers.is_commit, "two markers disagree")
        fate.told[partition] = markers.is_commit
        known = self.partition_epochs.get((partition, markers.producer_id), -1)
        self.check(markers.producer_epoch >= known, "a partition would refuse the marker: its epoch is old")
        self.partition_epochs[partition, markers.producer_id] = markers.producer_epoch


class History:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.host = Host(SETTINGS, TOPICS, self.rng.choice((0, 1, 2, 2, 2)))
        self.host.holds_markers = True
        self.ledger = Ledger()
        self.producers = [Producer(self.rng.choice(TRANSACTIONAL_IDS)) for _ in range(PRODUCERS)]
        self.in_flight: list[tuple[Markers, TopicPartition]] = []
        self.logged = 0
        self.trace: list[str] = []

    def run(self, steps: int) -> None:
        actions = (
            (self.request, 60),
            (self.marker_arrives, 30),
            (self.crash, 2),
            (self.time_passes, 4),
            (self.epochs_run_out, 1),
            (self.upgrade, 1),
            (self.ids_run_dry, 1),
        )
        choices = [action for action, weight in actions for _ in range(weight)]
        for _ in range(steps):
            self.rng.choice(choices)()
        self.settle()

    # Events

    def request(self) -> None:
        producer = self.rng.choice(self.producers)
        kind = self.rng.choices((self.init, self.add, self.offsets, self.end), (2, 5, 1, 4))[0]
        kind(producer)

    def init(self, producer: Producer) -> None:
        recovers = producer.producer_id >= 0 and self.rng.random() < 0.4
        version = self.rng.randint(3, 6) if recovers else self.rng.randint(0, 6)
        request = InitProducerIdRequest(
            transactional_id=producer.transactional_id,
            transaction_timeout_ms=self.rng.choice(TIMEOUTS_MS),
            producer_id=producer.producer_id if recovers else -1,
            producer_epoch=producer.epoch if recovers else -1,
            enable2_pc=version >= 6 and self.rng.random() < 0.05,
        )
        before = self.ledger.grants[producer.transactional_id]
        # else it expired, and any producer may claim it
        was_known = producer.transactional_id in self.ledger.owner
        answer = self.ask(request, version)
        self.trace.append(f"init {producer} {answer}")
        if answer is None or answer.error_code:
            return
        if not (recovers and was_known):
            self.ledger.grants[producer.transactional_id] = before + 1
        elif producer.grant != before:
            raise Violation(f"{producer} recovers although somebody came after it")
        producer.grant = self.ledger.grants[producer.transactional_id]
        producer.producer_id, producer.epoch = answer.producer_id, answer.producer_epoch

    def lies(self, producer: Producer) -> tuple[int, int]:
        """The id and epoch for a request, most often its own."""
        roll = self.rng.random()
        if roll < 0.9:
            return producer.producer_id, producer.epoch
        other = self.rng.choice(self.producers)
        if roll < 0.95:
            return other.producer_id, other.epoch
        return producer.producer_id, max(-1, producer.epoch + self.rng.choice((-1, 1)))

    def add(self, producer: Producer) -> None:
        producer_id, epoch = self.lies(producer)
        version = self.rng.choice((0, 3, 4, 5))
        wanted = self.rng.sample(PARTITIONS, self.rng.randint(1, 3))
        topics: dict[str, list[int]] = {}
        for topic, number in wanted:
            topics.setdefault(topic, []).append(number)
        asked = [
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=numbers)
            for name, numbers in topics.items()
        ]
        if version < 4:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=producer.transactional_id,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=asked,
            )
        else:
            one = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
                transactional_id=producer.transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                verify_only=self.rng.random() < 0.3,
                topics=asked,
            )
            request = AddPartitionsToTxnRequest(transactions=[one])
        answer = self.ask(request, version)
        self.trace.append(f"add {producer} {answer}")
        if answer is None:
            return
        results = (
            answer.results_by_transaction[0].topic_results
            if version >= 4
            else answer.results_by_topic_v3_and_below
        )
        codes = {each.partition_error_code for topic in results for each in topic.results_by_partition}
        if ErrorCode.NONE in codes:
            self.must_own(producer, (producer_id, epoch))

    def offsets(self, producer: Producer) -> None:
        producer_id, epoch = self.lies(producer)
        request = AddOffsetsToTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id="g",
        )
        answer = self.ask(request, self.rng.randint(0, 4))
        if answer is not None and not answer.error_code:
            self.must_own(producer, (producer_id, epoch))

    def end(self, producer: Producer) -> None:
        producer_id, epoch = self.lies(producer)
        version = self.rng.choice((0, 3, 4, 5, 5, 5))
        is_commit = self.rng.random() < 0.7
        request = EndTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=is_commit,
        )
        before = self.logged
        answer = self.ask(request, version)
        self.trace.append(f"end {producer} {is_commit} {answer}")
        if answer is None or answer.error_code:
            return
        name = producer.transactional_id
        state = self.ledger.state[name]
        agreed = (
            {State.PREPARE_COMMIT, State.COMPLETE_COMMIT}
            if is_commit
            else {State.PREPARE_ABORT, State.COMPLETE_ABORT}
        )
        self.ledger.check(state in agreed, f"{producer} was told {is_commit}, but {name} is {state}")
        is_own = (producer_id, epoch) == (producer.producer_id, producer.epoch)
        if self.logged > before and is_own:
            self.ledger.check(
                producer.grant == self.ledger.grants[name], f"{producer} was fenced, and ends a transaction"
            )
        if version >= 5 and is_own:
            producer.producer_id, producer.epoch = answer.producer_id, answer.producer_epoch

    def must_own(self, producer: Producer, given: tuple[int, int]) -> None:
        """Check that no other producer has come since: a request with this id and epoch was accepted."""
        owner = self.ledger.owner[producer.transactional_id]
        self.ledger.check(owner == given, f"{given} is heard, {owner} owns {producer.transactional_id}")
        if given == (producer.producer_id, producer.epoch):
            self.ledger.check(
                producer.grant == self.ledger.grants[producer.transactional_id],
                f"{producer} was fenced, and is heard",
            )

    def marker_arrives(self) -> None:
        """Write a marker to its partition. Most often the coordinator learns of it, maybe twice."""
        if not self.in_flight:
            return
        markers, partition = self.in_flight.pop(self.rng.randrange(len(self.in_flight)))
        fate = self.ledger.fate.get(markers.transactional_id)
        transaction = self.host.shard.transactions.get(markers.transactional_id)
        is_current = (
            fate is not None
            and transaction is not None
            and transaction.state.is_prepared
            and markers.coordinator_epoch == self.host.coordinator_epoch
        )
        if is_current:
            self.ledger.saw_marker(markers, partition)
        for _ in range(self.rng.choice((1, 1, 1, 2))):
            outcomes = (
                self.host.shard.markers_written(
                    markers.transactional_id,
                    markers.producer_id,
                    markers.producer_epoch,
                    [partition],
                    self.host.now_ms,
                )
                if is_current
                else []
            )
            for outcome in outcomes:
                self.take(outcome)

    def crash(self) -> None:
        """Replay the shard, as another coordinator would. Markers in flight may never arrive."""
        self.trace.append("crash")
        self.in_flight.clear()
        self.host.coordinator_epoch += 1
        self.host.shard = self.host.replayed()
        for outcome in self.host.shard.loaded(self.host.now_ms):
            self.take(outcome)

    def time_passes(self) -> None:
        """Advance time, sometimes far. Due timers run at their time, and their records may be lost."""
        end_ms = self.host.now_ms + self.rng.choice((1, 500, 10_000, 40_000, 1_000_000))
        while (due_ms := self.host.shard.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.host.now_ms = max(self.host.now_ms, due_ms)
            for outcome in self.host.shard.on_timer(self.host.now_ms, self.host.image, self.host.ids):
                if not self.take(outcome):
                    break
        self.host.now_ms = end_ms

    def epochs_run_out(self) -> None:
        """Let an id use up its epochs, as after many producers."""
        idle = [each for each in self.host.shard.transactions.values() if each.state.is_idle]
        if not idle or self.rng.random() < 0.5:
            return
        transaction = self.rng.choice(idle)
        if transaction.is_exhausted:
            return
        value = transaction.value(
            State.EMPTY,
            self.host.now_ms,
            producer_epoch=self.rng.choice((EPOCH_MAX_OF_CLIENTS - 1, EPOCH_MAX_OF_CLIENTS)),
            transaction_start_timestamp_ms=-1,
        )
        self.ledger.grants[transaction.transactional_id] += 1
        transaction.last_producer_epoch = -1
        self.take(
            TransactionOutcome([self.host.shard._writer.entry(transaction.transactional_id, value)]),
            is_safe=True,
        )

    def upgrade(self) -> None:
        if self.host.transaction_version < 2:
            self.host.transaction_version += 1
            self.host.image = self.host.make_image()

    def ids_run_dry(self) -> None:
        self.host.ids.is_dry = not self.host.ids.is_dry

    # Mechanics

    def ask(self, request: Message, version: int) -> object | None:
        """The response, or None if the request or the response got lost."""
        host = self.host
        request = type(request).decode(request.encode(version), version)
        outcome = host.shard.handle(request, Caller(version), host.image, host.now_ms, host.ids)
        if not self.take(outcome):
            return None
        assert outcome.reply is not None
        answer = type(outcome.reply).decode(outcome.reply.encode(version), version)
        return None if self.rng.random() < 0.05 else answer

    def take(self, outcome: TransactionOutcome, is_safe: bool = False) -> bool:
        """Append and apply; or the append fails and the shard is dropped. False: nothing of it took
        effect."""
        if outcome.records and not is_safe and self.rng.random() < 0.02:
            self.crash()
            return False
        for entry in outcome.records:
            encoded = encode(entry)
            self.host.log.append(encoded)
            self.logged += 1
            self.ledger.saw_record(*encoded)
            self.host.shard.apply(entry)
        if outcome.records:
            if not is_safe and self.rng.random() < 0.02:
                self.crash()  # before the response and the markers were sent
                return False
            self.compare_with_replay()
        for markers in outcome.markers:
            self.in_flight += [(markers, partition) for partition in markers.partitions]
        return True

    def compare_with_replay(self) -> None:
        if self.logged % 25 == 0:
            live, replayed = durable(self.host.shard), durable(self.host.replayed())
            self.ledger.check(live == replayed, f"replayed otherwise: {live} and {replayed}")

    def settle(self) -> None:
        """Stop all faults: everything open ends, and in the end every id expires."""
        self.host.ids.is_dry = False
        self.rng.random = lambda: 0.99  # type: ignore[method-assign]  # nothing gets lost any more
        for _ in range(200):
            while self.in_flight:
                self.marker_arrives()
            if all(each.state.is_idle or each.is_two_phase for each in self.host.shard.transactions.values()):
                break
            self.host.now_ms += 20_000
            for outcome in self.host.shard.on_timer(self.host.now_ms, self.host.image, self.host.ids):
                self.take(outcome)
        for transaction in list(self.host.shard.transactions.values()):
            if not transaction.state.is_idle:
                self.ledger.check(transaction.is_two_phase, f"{transaction.transactional_id} hangs")
                self.end_two_phases(transaction.transactional_id)
        self.host.now_ms += SETTINGS.id_expiration_ms + SETTINGS.id_expiration_check_interval_ms
        for outcome in self.host.shard.on_timer(self.host.now_ms, self.host.image, self.host.ids):
            self.take(outcome)
        self.ledger.check(not self.host.shard.transactions, "some ids are never forgotten")
        self.ledger.check(self.host.shard.next_deadline_ms() is None, "an empty shard waits for something")

    def end_two_phases(self, name: str) -> None:
        """Only a producer ends two-phase transactions."""
        answer = self.ask(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000), 4)
        self.ledger.check(answer.error_code == ErrorCode.CONCURRENT_TRANSACTIONS, f"{name}: {answer}")  # type: ignore[union-attr]
        while self.in_flight:
            self.marker_arrives()


def failure_of(seed: int, steps: int) -> str | None:
    history = History(seed)
    try:
        history.run(steps)
    except (Violation, KafkaError) as error:
        return f"seed {seed}: {error}\n" + "\n".join(history.trace[-10:])
    return None
