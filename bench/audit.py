"""`python -m bench.audit`: measures what counting for the audit costs a broker that is produced to.

Out: rows of `make bench` on brokers that take turns, some that count and one that does not: their
throughput, and the processor time of a request. The time until the last count is stored belongs to it.
Does not know: Apache Kafka, clients that count.
"""

from __future__ import annotations

import argparse
import sys
import time
from statistics import median

from rich.console import Console
from rich.table import Table

from bench import loads
from bench.brokers import Barnabas, cpu_seconds, create_topics, delete_topics
from bench.loads import Scale

ROWS = ("produce-pipelined", "produce-15k", "produce-880k")
INTERVAL_MS = 1_000
MODES = {
    "off": {},
    "headers": {"barnabas.audit.counts.enable": "true"},
    "records": {"barnabas.audit.counts.enable": "true", "barnabas.audit.counts.read": "records"},
}
HEADS = ("row", "counts", "value", "of off", "processor time a request, µs", "times off")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.audit", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of load a row, broker and round")
    parser.add_argument("--records", action="store_true", help="also a broker that opens every batch")
    options = parser.parse_args(arguments)
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
