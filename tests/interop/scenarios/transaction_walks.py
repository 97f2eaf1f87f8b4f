"""Random walks of transactional producers: begun, written, ended, taken over, misused, in any order."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from barnabas.protocol import ApiKey

from ..requests import batch, fetch, produce
from ..talk import Talk, scenario
from ..transactional import Producer, transactional_id

OFFSETS = ApiKey.ADD_OFFSETS_TO_TXN
PARTITIONS = 3
STEPS = 150
LOOK_EVERY = 25


class Walk:
    """Two ids with two producers each, which know nothing of each other, and one topic."""

    def __init__(self, talk: Talk, seed: int, *, is_new: bool) -> None:
        self.talk, self.is_new = talk, is_new
        self.rng = random.Random(seed)
        self.topic = talk.topic(partitions=PARTITIONS)
        names = [transactional_id(talk, name) for name in ("x", "y")]
        self.producers = [Producer(talk, name, f"{name[-1]}{number}") for name in names for number in (1, 2)]
        self.sequences: dict[tuple[int, int, int], int] = {}

    def run(self) -> None:
        actions: dict[Callable[[int, Producer], None], int] = {
            self.init: 2,
            self.add: 2 if self.is_new else 6,
            self.write: 10,
            self.offsets: 1,
            self.end: 6,
        }
        chosen = self.rng.choices(list(actions), list(actions.values()), k=STEPS)
        for step, action in enumerate(chosen):
            action(step, self.rng.choice(self.producers))
            if step % LOOK_EVERY == LOOK_EVERY - 1:
                self.look(step)
        for producer in self.producers:
            producer.init("ends the walk")
        self.look(STEPS)

    def init(self, step: int, producer: Producer) -> None:
        if producer.producer_id >= 0 and self.rng.random() < 0.4:
            producer.recover(f"{step}: recovers", self.rng.randint(3, 5))
        else:
            producer.init(f"{step}: starts", self.rng.randint(0, 5))

    def add(self, step: int, producer: Producer) -> None:
        wanted = self.rng.sample(range(PARTITIONS + 1), self.rng.randint(1, 2))  # one does not exist
        version = self.rng.randint(4, 5) if self.is_new else self.rng.randint(0, 3)
        producer.add(f"{step}: adds {wanted}", {self.topic: wanted}, version)

    def write(self, step: int, producer: Producer) -> None:
        partition = self.rng.randrange(PARTITIONS)
        epoch = producer.epoch + self.rng.choices((0, 1, -1), (20, 1, 1))[0]
        place = partition, producer.producer_id, epoch
        sequence = self.sequences.get(place, 0) + self.rng.choices((0, 1, -1), (20, 1, 1))[0]
        data = batch(
            b"%d" % step,
            time_ms=int(time.time() * 1000),
            producer_id=producer.producer_id,
            producer_epoch=epoch,
            base_sequence=max(0, sequence),
            transactional=True,
        )
        body = produce(self.talk, self.topic, {partition: data}, transactional_id=producer.name)
        version = self.rng.choice((12, 13)) if self.is_new else self.rng.choice((3, 9, 11))
        label = f"{producer.label} {step}: writes to {partition}, epoch {epoch}, sequence {max(0, sequence)}"
        answer = self.talk.ask(label, ApiKey.PRODUCE, version, **body)
        [result] = answer["responses"][0]["partition_responses"]
        if result["error_code"] == "NONE":
            self.sequences[place] = max(0, sequence) + 1

    def offsets(self, step: int, producer: Producer) -> None:
        body = producer.who(group_id=self.talk.name("group"))
        self.talk.ask(f"{producer.label} {step}: adds offsets", OFFSETS, self.rng.randint(0, 4), **body)

    def end(self, step: int, producer: Producer) -> None:
        commit = self.rng.random() < 0.6
        version = 5 if self.is_new else self.rng.randint(0, 4)
        fields = {}
        if self.rng.random() < 0.15:
            fields["producer_epoch"] = producer.epoch + self.rng.choice((1, -1))
        before = producer.producer_id, producer.epoch
        what = "commits" if commit else "aborts"
        producer.end(f"{step}: {what} {fields.get('producer_epoch', '')}", commit, version, **fields)
        if fields:
            producer.producer_id, producer.epoch = before  # it was somebody else's

    def look(self, step: int) -> None:
        talk, topic = self.talk, self.topic
        for level in (0, 1):
            places = [{"partition": number} for number in range(PARTITIONS)]
            body = fetch(talk, {topic: places}, isolation_level=level)
            talk.ask(f"{step}: what is there, isolation {level}", ApiKey.FETCH, 12, **body)
            asked = [{"partition_index": number, "timestamp": -1} for number in range(PARTITIONS)]
            talk.ask(
                f"{step}: where it ends, isolation {level}",
                ApiKey.LIST_OFFSETS,
                8,
                replica_id=-1,
                isolation_level=level,
                topics=[{"name": topic, "partitions": asked}],
            )
        wanted = [{"name": topic, "partition_indexes": list(range(PARTITIONS))}]
        talk.ask(f"{step}: who writes", ApiKey.DESCRIBE_PRODUCERS, 0, topics=wanted)
        for producer in self.producers[::2]:
            producer.described(f"{step}: is described")


@scenario
def of_older_clients(talk: Talk) -> None:
    Walk(talk, 1, is_new=False).run()


@scenario
def of_older_clients_again(talk: Talk) -> None:
    Walk(talk, 2, is_new=False).run()


@scenario
def of_newer_clients(talk: Talk) -> None:
    Walk(talk, 3, is_new=True).run()


@scenario
def of_newer_clients_again(talk: Talk) -> None:
    Walk(talk, 4, is_new=True).run()
