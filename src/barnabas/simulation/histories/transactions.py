"""A history of transactions: writers that commit and abort, loops from topic to topic, readers.

Checks (see `transaction_checks`): readers see a transaction completely or not at all; an older epoch is
refused after a newer one was assigned; each input of a consume-transform-produce loop is in the output
exactly once. Progress: after the faults, all input is processed, and the last stable offset of every
partition reaches its end.
"""

from __future__ import annotations

import asyncio

from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.records.record import Record, build_batch
from barnabas.simulation.histories.group_member import find_coordinator
from barnabas.simulation.histories.reading import Reader
from barnabas.simulation.histories.stage import COMPACTED, Stage, create_topic, kinds_of, promise_of
from barnabas.simulation.histories.transactional_client import Fenced, TransactionalProducer
from barnabas.simulation.models.transaction_checks import Epochs, Inputs, Outcome, Transactions
from barnabas.simulation.world.client import Job, SimulatedClient
from barnabas.simulation.world.faults import Plan, plan
from barnabas.simulation.world.history import Wrong
from barnabas.simulation.world.world import World, rng_of

INPUT, OUTPUT, GROUP = "input", "output", "loops"
SECONDS = 6.0
SECONDS_TO_RECOVER = 120.0
FAULTS_MAX = 9
FAULT_S_MEAN = 2.0  # long enough for some transactions to time out
WAIT_MS = 300
RETRY_S = 0.1
COMMIT_CHANCE = 0.7
BY_NAME_MAX = 9  # the last version of OffsetFetch that names topics
THREAD_MS = (1.0, 15.0)
SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}


class TransactionsHistory:
    name = "transactions"
    seconds_max = 900.0
    inputs_max = 60  # of a partition
    pause_s = 0.05  # between transactions of a writer
    stable_may_fall = False  # the last stable offset of a new leader may be lower for a while

    def __init__(self, seed: int) -> None:
        rng = rng_of(seed, "plan")
        self.promise = promise_of(rng)
        self.outputs = rng.randrange(1, 4)  # partitions
        self.inputs = {
            partition: rng.randrange(10, self.inputs_max) for partition in range(rng.randrange(0, 3))
        }
        self.rivals = rng.randrange(1, 3)  # clients for each transactional id
        self.writers = rng.randrange(0 if self.inputs else 1, 4)
        self.thread_ms = rng.choice(THREAD_MS)
        self.compacts = rng.random() < 0.5
        self.new_chance = rng.choice((0.0, 0.5, 1.0))
        self.faults: Plan = plan(
            rng,
            kinds_of(self.promise, rng),
            until_s=SECONDS,
            count_max=FAULTS_MAX,
            duration_s_mean=FAULT_S_MEAN,
        )
        self.transactions = Transactions()
        self.epochs = Epochs()
        self._is_trusted = True
        self._is_over = False
        self._done: set[str] = set()
        self._outputs_done: dict[int, int] = {}  # inputs known to be processed, by partition
        self._stage: Stage

    def make_stage(self, world: World, properties: dict[str, str]) -> Stage:
        return Stage(world, properties)

    async def run(self, world: World, faults: Plan) -> dict[str, int]:
        world.loop.thread_ms_mean = self.thread_ms
        compacted = COMPACTED if self.compacts else {}
        stage = self._stage = self.make_stage(world, {**SETTINGS, **compacted, **self.promise.properties})
        await stage.open()
        await create_topic(stage, OUTPUT, self.outputs)
        if self.inputs:
            await create_topic(stage, INPUT, len(self.inputs))
            stage.add("filler", self._fill)
            await stage.until(lambda: "filler" in self._done, 60, "the input is there")
        stage.node.on_power_loss.append(self._lost_power)
        workers = [
            stage.add(f"writer-{index}-{rival}", self._writer(f"writer-{index}"))
            for index in range(self.writers)
            for rival in range(self.rivals)
        ]
        workers += [
            stage.add(f"loop-{index}-{rival}", self._loop(index))
            for index in self.inputs
            for rival in range(self.rivals)
        ]
        reader = stage.add("reader", self._read)
        await stage.inject_faults(faults, SECONDS, [*workers, reader])
        self._is_over = True
        if self._is_trusted:
            names = {client.host for client in workers}
            await stage.until(lambda: names <= self._done, SECONDS_TO_RECOVER, "all is processed and written")
            await self.settle()
            stage.add("last-reader", self._read_all)
            await stage.until(
                lambda: "last-reader" in self._done, SECONDS_TO_RECOVER, "all is stable and read"
            )
        else:
            # The coordinator may have lost transactions that are still open on partitions. They hang, as in
            # Apache Kafka. Other transactions must make progress.
            stage.add("newcomer", self._run_newcomer)
            await stage.until(lambda: "newcomer" in self._done, SECONDS_TO_RECOVER, "a newcomer commits")
        outcomes = [transaction.outcome for transaction in self.transactions.all]
        return {
            "lives": stage.node.lives,
            "power losses": stage.node.power_losses,
            **{outcome.value: outcomes.count(outcome) for outcome in Outcome},
        }

    async def settle(self) -> None:
        """Wait for the conditions under which all records are read and compared."""

    def _lost_power(self) -> None:
        if not self.promise.survives_power_loss:
            self._is_trusted = False

    def _producer(self, client: SimulatedClient, transactional_id: str) -> TransactionalProducer:
        return TransactionalProducer(
            client,
            transactional_id,
            self.epochs,
            is_new=client.rng.random() < self.new_chance,
            is_trusted=lambda: self._is_trusted,
        )

    # -- writers -----------------------------------------------------------------------------------

    def _writer(self, transactional_id: str) -> Job:
        async def job(client: SimulatedClient) -> None:
            while not self._is_over:
                try:
                    producer = self._producer(client, transactional_id)
                    await producer.initialize()
                    while not self._is_over:
                        await self._write(client, producer)
                        await asyncio.sleep(client.rng.expovariate(1 / self.pause_s))
                except Fenced:
                    await asyncio.sleep(client.rng.expovariate(1.0))
            self._done.add(client.host)

        return job

    async def _write(self, client: SimulatedClient, producer: TransactionalProducer) -> None:
        transaction = self.transactions.begin()
        for step in range(client.rng.randrange(1, 5)):
            values = [transaction.value(f"{step}.{n}") for n in range(client.rng.randrange(1, 3))]
            await producer.write(OUTPUT, client.rng.randrange(self.outputs), values)
        await producer.end(transaction, commits=client.rng.random() < COMMIT_CHANCE)

    async def _run_newcomer(self, client: SimulatedClient) -> None:
        producer = self._producer(client, client.host)
        await producer.initialize()
        await self._write(client, producer)
        self._done.add(client.host)

    # -- loops -------------------------------------------------------------------------------------

    async def _fill(self, client: SimulatedClient) -> None:
        """Write the input before faults are injected."""
        response = await client.ask_until_answered(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000),
            InitProducerIdResponse,
            lambda response: response.error_code == ErrorCode.NONE,
        )
        now_ms = self._stage.world.clock.now_ms()
        for partition, count in self.inputs.items():
            batch = build_batch(
                [Record(timestamp=now_ms, value=b"%d" % offset) for offset in range(count)],
                producer_id=response.producer_id,
                producer_epoch=response.producer_epoch,
                base_sequence=0,
            )
            data = ProduceRequest.TopicProduceData
            given = data.PartitionProduceData(index=partition, records=bytes(batch))
            request = ProduceRequest(
                acks=-1, timeout_ms=3000, topic_data=[data(name=INPUT, partition_data=[given])]
            )
            while True:  # a cluster may have no leader yet
                produced = await client.ask(request, ProduceResponse, version_max=12)
                if produced is not None and not produced.responses[0].partition_responses[0].error_code:
                    break
                await asyncio.sleep(RETRY_S)
        self._done.add(client.host)

    def _loop(self, index: int) -> Job:
        async def job(client: SimulatedClient) -> None:
            await find_coordinator(client, GROUP)
            while True:
                try:
                    producer = self._producer(client, f"loop-{index}")
                    await producer.initialize()
                    if await self._transform(client, producer, index):
                        break
                except Fenced:
                    await asyncio.sleep(client.rng.expovariate(1.0))
            self._done.add(client.host)

        return job

    async def _transform(self, client: SimulatedClient, producer: TransactionalProducer, index: int) -> bool:
        """Process the input from the committed offset to its end. False: start again."""
        position = await self._committed(client, index)
        reader = Reader(client, TopicPartition(INPUT, index), read_committed=True, position=position)
        while position < self.inputs[index]:
            records = await reader.fetch(WAIT_MS)
            if not records:
                await asyncio.sleep(RETRY_S)
                continue
            for record in records:
                if position > record.offset:
                    continue
                transaction = self.transactions.begin()
                value = transaction.value(f"{index} {record.offset}")
                await producer.write(OUTPUT, client.rng.randrange(self.outputs), [value])
                await producer.commit_offsets(GROUP, INPUT, {index: record.offset + 1})
                commits = client.rng.random() < COMMIT_CHANCE
                await producer.end(transaction, commits=commits)
                if not commits:
                    return False
                position = record.offset + 1
                await asyncio.sleep(client.rng.expovariate(10))
        return True

    async def _committed(self, client: SimulatedClient, index: int) -> int:
        """The committed offset of the group, when it has no open transaction."""
        part = OffsetFetchRequest.OffsetFetchRequestGroup
        topic = part.OffsetFetchRequestTopics(name=INPUT, partition_indexes=[index])
        request = OffsetFetchRequest(groups=[part(group_id=GROUP, topics=[topic])], require_stable=True)
        while True:
            response = await client.ask(request, OffsetFetchResponse, version_max=BY_NAME_MAX)
            if response is not None and not response.groups[0].error_code:
                found = response.groups[0].topics[0].partitions[0]
                if not found.error_code:
                    return max(found.committed_offset, 0)
            await asyncio.sleep(RETRY_S)

    # -- readers -----------------------------------------------------------------------------------

    def _readers(self, client: SimulatedClient) -> list[Reader]:
        return [
            Reader(client, TopicPartition(OUTPUT, index), read_committed=True)
            for index in range(self.outputs)
        ]

    async def _read(self, client: SimulatedClient) -> None:
        readers = self._readers(client)
        while not self._is_over:
            reader = client.rng.choice(readers)
            stable = reader.last_stable_offset
            records = await reader.fetch(WAIT_MS)
            if records is None:
                if reader.error is ErrorCode.OFFSET_OUT_OF_RANGE:
                    if self._is_trusted:
                        raise Wrong(f"{reader.where} ends before {reader.position}, which was read")
                    reader.position = 0
                await asyncio.sleep(RETRY_S)
                continue
            if not self._is_trusted:
                continue
            if reader.last_stable_offset < stable and not self.stable_may_fall:
                raise Wrong(f"the last stable offset of {reader.where} went back from {stable}")
            for record in records:
                self.transactions.saw(record.value or b"")

    async def _read_all(self, client: SimulatedClient) -> None:
        """Wait until no transaction is open, then read all records and compare."""
        found: list[bytes] = []
        for reader in self._readers(client):
            while not (reader.is_at_end and reader.last_stable_offset == reader.high_watermark):
                records = await reader.fetch(0)
                found += [record.value or b"" for record in records or ()]
                if not records:
                    await asyncio.sleep(RETRY_S)
        self.transactions.compare(found)
        outputs = [value.split(b" ") for value in found]
        Inputs(self.inputs).compare((int(words[1]), int(words[2])) for words in outputs if len(words) == 3)
        self._done.add(client.host)
