"""`python -m bench.encryption`: measures the cost of encryption at rest.

Out: a table with rows of `make bench` on two of our brokers, one with encrypted files and one without,
alternating: the value, and the broker's processor time for a megabyte. Does not know: Apache Kafka.
"""

from __future__ import annotations

import argparse
import base64
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from bench import loads
from bench.brokers import Barnabas, cpu_seconds, create_topics, delete_topics
from bench.loads import Scale

PRODUCE_ROWS = ("produce-pipelined", "produce-15k", "produce-880k")
FETCH = "fetch"
HEADS = ("row", "plain", "encrypted", "ratio", "plain, CPU", "encrypted, CPU", "of it")

Found = dict[tuple[str, str], list[tuple[float, float]]]  # by row and broker: values and processor times


def measured(
    brokers: dict[str, Barnabas], rounds: int, scale: Scale
) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """The value of each row and broker in each round, and the broker's processor time for the same work."""
    found: Found = {}
    for broker in brokers.values():
        loads.make_backlog(broker, scale)
    for _ in range(rounds):
        for row in PRODUCE_ROWS:
            for name, broker in brokers.items():
                create_topics(broker, {row: 1})
                before = cpu_seconds(broker.pid)
                load = loads.PRODUCE[row].load(broker.port, row, scale)
                used = (cpu_seconds(broker.pid) - before) / load.requests * 1e6
                delete_topics(broker, row)
                found.setdefault((row, name), []).append((loads.PRODUCE[row].value(load), used))
        for name, broker in brokers.items():
            before = cpu_seconds(broker.pid)
            value = loads.fetch_backlog(broker, scale)[FETCH]
            used = (cpu_seconds(broker.pid) - before) / (value * scale.seconds) * 1e6
            found.setdefault((FETCH, name), []).append((value, used))
    return found


def show(found: Found, console: Console) -> None:
    table = Table(title="encryption at rest; CPU: µs a request, for fetch µs a MB")
    for head in HEADS:
        table.add_column(head, justify="left" if head == "row" else "right")
    for row in (*PRODUCE_ROWS, FETCH):
        plain, encrypted = found[row, "plain"], found[row, "encrypted"]
        values = [median(value for value, _ in each) for each in (plain, encrypted)]
        least = [min(cpu for _, cpu in each) for each in (plain, encrypted)]
        table.add_row(
            row,
            *(f"{value:,.0f}" for value in values),
            f"{values[1] / values[0]:.2f}",
            *(f"{cpu:,.2f}" for cpu in least),
            f"{least[1] / least[0]:.2f}",
        )
    console.print(table)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.encryption", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of load a row, broker and round")
    options = parser.parse_args(arguments)
    scale = Scale(seconds=options.seconds, bytes_max=800_000_000, backlog_bytes=500_000_000, warm_pages=False)
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder) / "master.keys"
        keys.write_text(f"bench={base64.b64encode(os.urandom(32)).decode()}\n")
        keys.chmod(0o600)
        settings = {"barnabas.encryption.enabled": "true", "barnabas.encryption.key.file": str(keys)}
        brokers = {"plain": Barnabas(), "encrypted": Barnabas(overrides=settings)}
        try:
            for broker in brokers.values():
                broker.start()
            found = measured(brokers, options.rounds, scale)
        finally:
            for broker in brokers.values():
                broker.close()
    show(found, Console() if sys.stdout.isatty() else Console(width=120))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
