"""`python -m bench.audit`: measures what counting for the audit costs a broker that is produced to.

Out: the processor time to count one batch; and rows of `make bench` on brokers that take turns, some that
count and one that does not: their throughput, and the processor time of a request. The time until the last
count is stored belongs to it.
Does not know: Apache Kafka, clients that count.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from statistics import median

from rich.console import Console
from rich.table import Table

from barnabas.audit.core.batch_counts import BatchCounts, Opens
from barnabas.records.batch import BatchHeader, assign
from bench import loads
from bench.brokers import Barnabas, cpu_seconds, create_topics, delete_topics
from bench.loads import Scale
from bench.validation import NOW_MS, batches, seconds_of

ROWS = ("produce-pipelined", "produce-15k", "produce-880k")
INTERVAL_MS = 1_000
RECORDS_ALONE = 2_000  # of a log that is counted without a broker
MODES = {
    "off": {},
    "headers": {"barnabas.audit.counts.enable": "true"},
    "records": {"barnabas.audit.counts.enable": "true", "barnabas.audit.counts.read": "records"},
}
HEADS = ("row", "counts", "value", "of off", "processor time a request, µs", "times off")


def alone(console: Console) -> None:
    """The processor time to count one batch, without a broker."""
    table = Table(title="counting of one batch, without a broker")
    for head in ("batch", "headers, µs", "records, µs", "contents, µs"):
        table.add_column(head, justify="left" if head == "batch" else "right")
    for name, batch in batches().items():
        number = max(1, RECORDS_ALONE // BatchHeader(batch).record_count)
        log = log_of(batch, number)
        took = [seconds_of(partial(count_all, log, opens)) * 1e6 / number for opens in Opens]
        table.add_row(name, *(f"{each:,.2f}" for each in took))
    console.print(table)


def log_of(batch: bytes, batches: int) -> bytes:
    """A log of the same batch, again and again."""
    written, count = bytearray(), BatchHeader(batch).last_offset_delta + 1
    for number in range(batches):
        written += batch
        assign(written, number * len(batch), number * count, 0)
    return bytes(written)


def count_all(log: bytes, opens: Opens) -> None:
    counts, position = BatchCounts(0, 600_000, NOW_MS, opens), 0
    while position < len(log):
        behind = counts.add_plain(log, position, len(log))
        if behind == position:
            header = BatchHeader(log, position)
            batch = memoryview(log)[position : position + header.size]
            counts.add(header, lambda batch=batch: batch, is_aborted=False)  # type: ignore[misc]
            behind += header.size
        position = behind


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.audit", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of load a row, broker and round")
    parser.add_argument("--records", action="store_true", help="also a broker that opens every batch")
    parser.add_argument("--alone", action="store_true", help="only batches, without brokers")
    options = parser.parse_args(arguments)
    alone(Console() if sys.stdout.isatty() else Console(width=150))
    if options.alone:
        return 0
    modes = [mode for mode in MODES if mode != "records" or options.records]
    interval = {"barnabas.audit.counts.interval.ms": str(INTERVAL_MS)}
    brokers = {mode: Barnabas(overrides={**interval, **MODES[mode]}) for mode in modes}
    scale = Scale(seconds=options.seconds, bytes_max=800_000_000, warm_pages=False)
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    try:
        for broker in brokers.values():
            broker.start()
        for _ in range(options.rounds):
            for row in ROWS:
                for mode, broker in brokers.items():
                    create_topics(broker, {row: 1})
                    before = cpu_seconds(broker.pid)
                    load = loads.PRODUCE[row].load(broker.port, row, scale)
                    time.sleep(
                        2 * INTERVAL_MS / 1000
                    )  # what is left is counted: the cost belongs to the load
                    used = cpu_seconds(broker.pid) - before
                    delete_topics(broker, row)
                    value = loads.PRODUCE[row].value(load)
                    found.setdefault((row, mode), []).append((value, used / load.requests * 1e6))
    finally:
        for broker in brokers.values():
            broker.close()
    show(found, modes)
    return 0


def show(found: dict[tuple[str, str], list[tuple[float, float]]], modes: list[str]) -> None:
    table = Table(title="produce with and without counting for the audit")
    for head in HEADS:
        table.add_column(head, justify="left" if head in HEADS[:2] else "right")
    for row in ROWS:
        values = {mode: median(value for value, _ in found[row, mode]) for mode in modes}
        least = {mode: min(used for _, used in found[row, mode]) for mode in modes}
        for mode in modes:
            table.add_row(
                row,
                mode,
                f"{values[mode]:,.0f}",
                f"{values[mode] / values['off']:.3f}",
                f"{least[mode]:,.2f}",
                f"{least[mode] / least['off']:.3f}",
            )
    (Console() if sys.stdout.isatty() else Console(width=150)).print(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
