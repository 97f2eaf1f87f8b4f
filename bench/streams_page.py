"""The page of the comparison of streams: rows of results as a table, latency, idle queries.

In: what was measured. Out: text. Does not know: how it was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench import machine
from bench.streams_sides import Ran

LATENCY: dict[str, tuple[int, int | None]] = {"stateless": (400, 1000), "minutes": (1000, None)}
HEAD = (
    "row",
    "against",
    "ours, k records/s",
    "theirs, k records/s",
    "ratio",
    "by processor time",
    "floor",
    "",
    "done by ours, theirs",
)
EXPLAINED = """
Every side reads the same topics of two partitions from the same Barnabas broker, in a process of its own,
one after the other: ours on `local[2]`, Java Kafka Streams 4.3.1 with two threads, a heap of 1 GiB and a
commit interval of a second, Faust and Quix Streams as their documents begin. The clock runs from the moment
at which the application says that it runs until its group has committed the end of every topic that it
reads, repartition topics included, or until the time of a side is over. "Done" says how much of the backlog
that was: the share of the source topics, times that of the repartition topics. Starts of Spark's Python
workers and Java's compiler are in the time. The ratio by processor time counts the application's and the
broker's seconds together: other work on the machine changes it less.

Rows are at least once unless they say otherwise; exactly once is `exactly_once_v2` on both sides, results and
offsets in transactions. Faust gets a five-hundredth of the records, Quix Streams a hundredth: their rates do
not depend on how many there are. Their clock stops when every result is written, which is one for each word.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A comparison: our topology with another side's."""

    name: str
    title: str
    ours: str
    peer: str
    theirs: str
    floor: float
    guarantee: str = "at_least_once"


@dataclass(frozen=True, slots=True)
class Measured:
    """One side, and how many records lay before it."""

    records: int
    ran: Ran

    @property
    def rate(self) -> float:
        """Thousands of records a second."""
        return self.records * self.ran.share / self.ran.seconds / 1e3

    @property
    def by_processor(self) -> float:
        """Records for each second of processor time of the application and the broker."""
        return self.records * self.ran.share / (self.ran.processor_s + self.ran.broker_s)

    @property
    def done(self) -> str:
        count = f"{self.records / 1e6:g} million" if self.records >= 1e6 else f"{self.records:,}"
        return f"{self.ran.share:.0%} of {count} in {self.ran.seconds:.0f} s"


@dataclass(slots=True)
class Found:
    row: Row
    ours: Measured | None = None
    theirs: Measured | None = None
    problem: str = ""


def cells(found: Found) -> tuple[str, ...]:
    row = found.row
    floor = f"≥ {row.floor:g}"
    if found.problem or found.ours is None or found.theirs is None:
        shown = [f"{each.rate:,.1f}" if each else "-" for each in (found.ours, found.theirs)]
        return (row.title, row.peer, *shown, f"not measured: {found.problem}", "", floor, "", "")
    ours, theirs = found.ours, found.theirs
    ratio = ours.rate / theirs.rate
    return (
        row.title,
        row.peer,
        f"{ours.rate:,.1f}",
        f"{theirs.rate:,.1f}",
        f"{ratio:.2f}",
        f"{ours.by_processor / theirs.by_processor:.2f}",
        floor,
        "pass" if ratio >= row.floor else "FAIL",
        f"{ours.done}; {theirs.done}",
    )


def page(results: Sequence[Found], costs: Mapping[str, Mapping[str, float]]) -> str:
    lines = ["# Benchmarks of streams", "", "Written by `make bench-streams`.", *EXPLAINED.splitlines(), ""]
    lines += [*(f"- {name}: {value}" for name, value in machine.description()), ""]
    if results:
        lines += ["| " + " | ".join(HEAD) + " |", "| --- " * len(HEAD) + "|"]
        lines += ["| " + " | ".join(cells(result)) + " |" for result in results]
    lines += ["", "## Latency", ""]
    lines += ["| what | p50, ms | p99, ms | floor | |", "| --- | --- | --- | --- | --- |"]
    for name, (p50_max, p99_max) in LATENCY.items():
        if (found := costs.get(name)) is None:
            continue
        holds = found["p50"] < p50_max and (p99_max is None or found["p99"] < p99_max)
        floor = f"p50 < {p50_max}" + ("" if p99_max is None else f", p99 < {p99_max}")
        shown = f"{found['p50']:.0f} | {found['p99']:.0f} | {floor} | {'pass' if holds else 'FAIL'} |"
        lines.append(f"| {name}, {found['rate']:,.0f} records/s | {shown}")
    if (idle := costs.get("idle")) is not None:
        lines += ["", "## Idle queries", "", *idle_lines(idle)]
    return "\n".join([*lines, ""])


def idle_lines(idle: Mapping[str, float]) -> list[str]:
    """One row for each count of queries, then what a further query takes."""
    counts = sorted(int(name[5:]) for name in idle if name[5:].isdecimal())
    lines = ["| queries | share of a processor | MB |", "| --- | --- | --- |"]
    lines += [
        f"| {count} | {100 * idle[f'idle-{count}']:.1f} % | {idle[f'idle-{count} MB']:,.0f} |"
        for count in counts
    ]
    first, last = counts[0], counts[-1]
    share = (idle[f"idle-{last}"] - idle[f"idle-{first}"]) / (last - first)
    memory = (idle[f"idle-{last} MB"] - idle[f"idle-{first} MB"]) / (last - first)
    return [*lines, "", f"Each further query takes {100 * share:.2f} % of a processor and {memory:.1f} MB."]
