"""`python -m bench.validation`: measures the cost of each level of `barnabas.produce.validation`.

Out: three tables: the processor time to validate one batch, without a broker; the same where values must name
a schema; and rows of `make bench` on brokers of each level, alternating, with the broker's processor time for
a request. Does not know: Apache Kafka.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median

from rich.console import Console
from rich.table import Table

from barnabas.records.batch import BatchHeader
from barnabas.records.compression import Compression
from barnabas.records.record import Record, build_batch
from barnabas.records.schema_ids import SchemaIds, SchemaRules
from barnabas.records.validation import AppendRules, Validation, validate_produce
from bench import loads
from bench.brokers import Barnabas, cpu_seconds, create_topics, delete_topics
from bench.loads import Scale

VERSION = 12
NOW_MS = 1_700_000_000_000
SHARE_MAX = 1.03  # the processor time of a request with relaxed may be this many times that with none
SECONDS_PER_TRY = 0.02
TRIES = 15
ROWS = ("produce-pipelined", "produce-15k", "produce-880k")
LEVELS = tuple(Validation)
HEADS = ("batch", "records", "none, µs", "relaxed, µs", "strict, µs", "strict, MB/s", "strict, k records/s")


def batches() -> dict[str, bytes]:
    """Records like those of clients, of about 100 bytes, with different keys and times."""
    rng = random.Random(1)

    def records(count: int) -> list[Record]:
        words = [b"%x" % rng.getrandbits(64) for _ in range(100)]
        return [
            Record(
                timestamp=NOW_MS + index // 3,
                key=b"key-%d" % index,
                value=b" ".join(rng.choices(words, k=6))[: rng.randint(70, 110)],
            )
            for index in range(count)
        ]

    found = {"1 record": bytes(build_batch([Record(timestamp=NOW_MS, value=b"v" * 100)]))}
    found["1 record with a key"] = bytes(build_batch(records(1)))
    for label, count in (("15 KB", 139), ("880 KB", 8200)):
        for codec in (Compression.NONE, Compression.LZ4, Compression.ZSTD):
            name = f"{label} of records, {codec.name.lower() if codec else 'uncompressed'}"
            found[name] = bytes(build_batch(records(count), compression=codec))
    return found


def seconds_of(work: Callable[[], object]) -> float:
    """The minimum processor time of a call."""
    began = time.process_time()
    work()
    once = max(time.process_time() - began, 1e-6)
    calls = max(1, int(SECONDS_PER_TRY / once))
    best = float("inf")
    for _ in range(TRIES):
        began = time.process_time()
        for _ in range(calls):
            work()
        best = min(best, (time.process_time() - began) / calls)
    return best


def alone(console: Console) -> None:
    table = Table(title="validation of one batch, without a broker")
    for head in HEADS:
        table.add_column(head, justify="left" if head == "batch" else "right")
    for name, batch in batches().items():
        view = memoryview(bytearray(batch))
        count = BatchHeader(batch).record_count
        took = []
        for level in LEVELS:
            rules = AppendRules(validation=level)
            took.append(seconds_of(partial(validate_produce, view, rules, VERSION, NOW_MS, "", never)))
        strict = took[-1]
        table.add_row(
            name,
            str(count),
            *(f"{each * 1e6:,.2f}" for each in took),
            f"{len(batch) / strict / 1e6:,.0f}",
            f"{count / strict / 1e3:,.0f}",
        )
    console.print(table)


def with_schemas(console: Console) -> None:
    """Batches of values that begin with the id of a schema, read with and without that rule."""
    table = Table(title="validation of one batch whose values must name a schema, without a broker")
    for head in ("batch", "records", "off, µs", "on, µs", "on, µs a record", "strict, µs"):
        table.add_column(head, justify="left" if head == "batch" else "right")
    ids = SchemaIds("t", "TopicNameStrategy", is_key=False)
    prefixes = [b"\0" + number.to_bytes(4, "big") for number in (1, 2, 3)]
    ids.accepted = frozenset(prefixes)
    rules = {
        "off": AppendRules(),
        "on": AppendRules(schemas=SchemaRules(None, ids)),
        "strict": AppendRules(validation=Validation.STRICT),
    }
    for count in (1, 139, 8200):
        records = [
            Record(timestamp=NOW_MS, key=b"key-%d" % index, value=prefixes[index % 3] + b"v" * 90)
            for index in range(count)
        ]
        for codec in (Compression.NONE, Compression.ZSTD):
            view = memoryview(build_batch(records, compression=codec))
            took = {
                name: seconds_of(partial(validate_produce, view, found, VERSION, NOW_MS, "", never))
                for name, found in rules.items()
            }
            table.add_row(
                f"{count} records, {codec.name.lower() if codec else 'uncompressed'}",
                str(count),
                f"{took['off'] * 1e6:,.2f}",
                f"{took['on'] * 1e6:,.2f}",
                f"{took['on'] * 1e6 / count:,.2f}",
                f"{took['strict'] * 1e6:,.2f}",
            )
    console.print(table)


def never() -> None:
    """A pause that returns at once, because no other thread waits."""


def on_brokers(console: Console, rounds: int, seconds: float) -> bool:
    """Measure the rows; return whether relaxed stays below its limit."""
    trials = {row: loads.PRODUCE[row] for row in ROWS}
    brokers = {
        level: Barnabas(overrides={"barnabas.produce.validation": level.name.lower()}) for level in LEVELS
    }
    found: dict[tuple[str, Validation], list[tuple[float, float]]] = {}
    scale = Scale(seconds=seconds, bytes_max=800_000_000, warm_pages=False)
    try:
        for broker in brokers.values():
            broker.start()
        for _ in range(rounds):
            for row, trial in trials.items():
                for level, broker in brokers.items():
                    create_topics(broker, {row: 1})
                    before = cpu_seconds(broker.pid)
                    load = trial.load(broker.port, row, scale)
                    used = cpu_seconds(broker.pid) - before
                    delete_topics(broker, row)
                    found.setdefault((row, level), []).append((trial.value(load), used / load.requests * 1e6))
    finally:
        for broker in brokers.values():
            broker.close()
    table = Table(title="rows of `make bench`, by level")
    for head in ("row", "level", "value", "processor time a request, µs", "times none"):
        table.add_column(head, justify="left" if head in ("row", "level") else "right")
    holds = True
    for row in trials:
        # The minimum of all rounds: the page cache and other programs only add time.
        least = {level: min(cpu for _, cpu in found[row, level]) for level in LEVELS}
        ratios = {level: least[level] / least[Validation.NONE] for level in LEVELS}
        for level in LEVELS:
            values = [value for value, _ in found[row, level]]
            table.add_row(
                row,
                level.name.lower(),
                f"{median(values):,.0f}",
                f"{least[level]:,.2f}",
                f"{ratios[level]:.3f}",
            )
        holds = holds and ratios[Validation.RELAXED] <= SHARE_MAX
    console.print(table)
    return holds


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.validation", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of load a row, level and round")
    parser.add_argument("--alone", action="store_true", help="only batches, without brokers")
    options = parser.parse_args(arguments)
    console = Console() if sys.stdout.isatty() else Console(width=150)
    alone(console)
    with_schemas(console)
    return 0 if options.alone or on_brokers(console, options.rounds, options.seconds) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
