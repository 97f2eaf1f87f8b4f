"""A history of records: idempotent producers, readers, and a node that may fail at any point.

Checks: every acknowledged record exists once, at the acknowledged offset, in the producer's order; the record
at an offset never changes for a reader; the high watermark never decreases. This holds as far as the settings
promise it: without syncs, a power loss may remove acknowledged records, and the remaining ones must be in
order and unique.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from barnabas.client.core.fetching import ConsumerRecord
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.records.record import Record, build_batch
from barnabas.simulation.histories.reading import Reader
from barnabas.simulation.histories.stage import Stage, create_topic, kinds_of, promise_of
from barnabas.simulation.world.client import Job, SimulatedClient
from barnabas.simulation.world.faults import Plan, plan
from barnabas.simulation.world.history import Wrong
from barnabas.simulation.world.world import World, rng_of

TOPIC = "records"
SECONDS = 4.0
SECONDS_TO_RECOVER = 90.0
FAULTS_MAX = 8
BY_NAME_MAX = 12  # the last version of Produce that names topics
RETRY_S = 0.05
WAIT_MS = 500
ROLL_MS = ("", "300", "3000")
PADDING_BYTES = (0, 0, 200, 9000)
THREAD_MS = (1.0, 20.0)  # duration of a sync
PAUSE_S = (0.02, 0.1)
WRITTEN = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)


@dataclass(slots=True)
class Known:
    """The state of one partition that clients know."""

    acknowledged: dict[int, bytes] = field(default_factory=dict)  # by offset
    seen: dict[int, bytes] = field(default_factory=dict)
    high_watermark: int = 0

    def forget(self) -> None:
        self.acknowledged.clear()
        self.seen.clear()
        self.high_watermark = 0


class RecordsHistory:
    name = "records"
    seconds_max = 600.0
    seconds = SECONDS
    pauses_s = PAUSE_S
    old_leaders_s = 0.0  # how long a broker may respond with the sequences of a leader that was replaced

    def __init__(self, seed: int) -> None:
        rng = rng_of(seed, "plan")
        self.promise = promise_of(rng)
        self.producers = rng.randrange(1, 7)
        self.readers = rng.randrange(1, 3)
        self.padding = bytes(rng.choice(PADDING_BYTES))
        self.roll_ms = rng.choice(ROLL_MS)
        self.thread_ms = rng.choice(THREAD_MS)
        self.pause_s = rng.choice(self.pauses_s)
        self.known = [Known() for _ in range(rng.choice((1, 1, 2, 3)))]
        self.faults: Plan = plan(rng, kinds_of(self.promise, rng), until_s=SECONDS, count_max=FAULTS_MAX)
        self._is_over = False
        self._done: set[str] = set()
        self._losses_forgiven = 0
        self._stage: Stage

    def make_stage(self, world: World, properties: dict[str, str]) -> Stage:
        return Stage(world, properties)

    @property
    def survives_power_loss(self) -> bool:
        return self.promise.survives_power_loss

    async def settle(self) -> None:
        """Wait for the conditions under which all records are read and compared."""

    def others(self) -> dict[str, Job]:
        """Additional clients of derived histories."""
        return {}

    async def run(self, world: World, faults: Plan) -> dict[str, int]:
        properties = dict(self.promise.properties)
        if self.roll_ms:
            properties["log.roll.ms"] = self.roll_ms
        world.loop.thread_ms_mean = self.thread_ms
        stage = self._stage = self.make_stage(world, properties)
        await stage.open()
        await create_topic(stage, TOPIC, len(self.known))
        producers = [stage.add(f"producer-{index}", self._produce) for index in range(self.producers)]
        readers = [stage.add(f"reader-{index}", self._read) for index in range(self.readers)]
        others = [stage.add(name, job) for name, job in self.others().items()]
        await stage.inject_faults(faults, self.seconds, [*producers, *readers, *others])
        self._is_over = True
        names = {client.host for client in producers}
        await stage.until(lambda: names <= self._done, SECONDS_TO_RECOVER, "producers end their last batch")
        await self.settle()
        stage.add("last-reader", self._read_all)
        await stage.until(lambda: "last-reader" in self._done, SECONDS_TO_RECOVER, "everything is read")
        return {
            "records": sum(len(each.acknowledged) for each in self.known),
            "lives": stage.node.lives,
            "power losses": stage.node.power_losses,
        }

    def _forgive(self) -> int:
        """The number of power losses that may have removed acknowledged records. Clients forget their state
        then."""
        if self.survives_power_loss:
            return 0
        losses = self._stage.node.power_losses
        if losses > self._losses_forgiven:
            self._losses_forgiven = losses
            for each in self.known:
                each.forget()
        return losses

    # -- producers ---------------------------------------------------------------------------------

    async def _produce(self, client: SimulatedClient) -> None:
        life = 0
        while not self._is_over:
            life += 1
            losses = self._forgive()
            response = await client.ask_until_answered(
                InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000),
                InitProducerIdResponse,
                lambda response: response.error_code == ErrorCode.NONE,
            )
            sequences = [0] * len(self.known)
            name = f"{client.host}/{client.lives}/{life}"
            while not self._is_over:
                index = client.rng.randrange(len(self.known))
                count = client.rng.randrange(1, 4)
                values = [
                    b"%s %d %s" % (name.encode(), sequences[index] + i, self.padding) for i in range(count)
                ]
                if not await self._send(client, index, response, sequences[index], values):
                    if self._forgive() == losses:
                        raise Wrong(f"{name} lost its sequence in partition {index} at {sequences[index]}")
                    break  # the broker has lost acknowledged records: use another producer id
                sequences[index] += count
                await asyncio.sleep(client.rng.expovariate(1 / self.pause_s))
        self._done.add(client.host)

    async def _send(
        self,
        client: SimulatedClient,
        index: int,
        producer: InitProducerIdResponse,
        sequence: int,
        values: list[bytes],
    ) -> bool:
        """Repeat a batch until it is acknowledged. False: the broker reports missing earlier batches."""
        now_ms = self._stage.world.clock.now_ms()
        batch = build_batch(
            [Record(timestamp=now_ms, value=value) for value in values],
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=sequence,
        )
        data = ProduceRequest.TopicProduceData.PartitionProduceData(index=index, records=bytes(batch))
        request = ProduceRequest(
            acks=-1,
            timeout_ms=3000,
            topic_data=[ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])],
        )
        patient_until = self._stage.world.loop.time() + self.old_leaders_s
        while True:
            losses = self._forgive()
            response = await client.ask(request, ProduceResponse, version_max=BY_NAME_MAX)
            if response is not None:
                result = response.responses[0].partition_responses[0]
                code = ErrorCode(result.error_code)
                if code in WRITTEN:
                    if losses == self._forgive() and result.base_offset >= 0:
                        self._acknowledged(index, result.base_offset, values)
                    return True
                if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                    if self._stage.world.loop.time() > patient_until or losses != self._forgive():
                        return False
                elif not code.retriable:
                    return False
            await asyncio.sleep(RETRY_S)

    def _acknowledged(self, index: int, base_offset: int, values: list[bytes]) -> None:
        known = self.known[index].acknowledged
        for offset, value in enumerate(values, base_offset):
            if known.setdefault(offset, value) != value:
                raise Wrong(f"offset {offset} of partition {index} was acknowledged to two producers")

    # -- readers -----------------------------------------------------------------------------------

    def _readers(self, client: SimulatedClient) -> list[Reader]:
        return [
            Reader(client, TopicPartition(TOPIC, index), read_committed=False)
            for index in range(len(self.known))
        ]

    async def _read(self, client: SimulatedClient) -> None:
        readers = self._readers(client)
        while not self._is_over:
            reader = client.rng.choice(readers)
            losses = self._forgive()
            for record in await self._fetch(reader, WAIT_MS):
                if losses == self._forgive():
                    self._saw(record)

    def _saw(self, record: ConsumerRecord) -> None:
        value = record.value or b""
        if self.known[record.partition].seen.setdefault(record.offset, value) != value:
            raise Wrong(f"offset {record.offset} of {record.partition} changed its record under a reader")

    async def _fetch(self, reader: Reader, wait_ms: int) -> list[ConsumerRecord]:
        index = reader.where.partition
        known = self.known[index]
        losses, watermark = self._forgive(), known.high_watermark
        records = await reader.fetch(wait_ms)
        if records is None:
            if reader.error is ErrorCode.OFFSET_OUT_OF_RANGE:
                if not self._losses_forgiven:
                    raise Wrong(f"partition {index} ends before {reader.position}, which was read")
                reader.position = 0
            await asyncio.sleep(RETRY_S)
            return []
        if losses == self._forgive():
            if reader.high_watermark < watermark:
                raise Wrong(
                    f"the high watermark of {index} went back: {watermark} to {reader.high_watermark}"
                )
            known.high_watermark = max(known.high_watermark, reader.high_watermark)
        return records

    async def _read_all(self, client: SimulatedClient) -> None:
        """Read all records from the beginning and compare them."""
        for reader in self._readers(client):
            found: dict[int, bytes] = {}
            while not reader.is_at_end:
                found |= {record.offset: record.value or b"" for record in await self._fetch(reader, 0)}
            self._compare(reader.where.partition, found)
        self._done.add(client.host)

    def _compare(self, index: int, found: dict[int, bytes]) -> None:
        known = self.known[index]
        for offset, value in known.acknowledged.items():
            if found.get(offset) != value:
                raise Wrong(
                    f"the record at {offset} of {index} was acknowledged and is {found.get(offset)!r}"
                )
        for offset, value in known.seen.items():
            if found.get(offset) != value:
                raise Wrong(f"the record at {offset} of {index} was read and is now {found.get(offset)!r}")
        last: dict[bytes, int] = {}
        for offset in sorted(found):
            name, number, *_ = found[offset].split(b" ")
            if last.get(name, -1) >= int(number):
                raise Wrong(f"{name.decode()} wrote {int(number)} to {index} twice or too late, at {offset}")
            last[name] = int(number)
