"""Results for people: a table on the terminal, `docs/benchmarks.md`, a plot.

In: results, the machine's description. Out: text and an SVG.
Does not know: brokers, how anything was measured.
"""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.rounds import Result
from bench.rows import Better

HEAD = ("row", "Barnabas", "Apache Kafka", "bare server", "ratio (spread)", "floor", "")
PLOT = "benchmarks.svg"


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def cells(result: Result) -> tuple[str, ...]:
    row = result.row
    median = [
        f"{number(statistics.median(values))} {row.unit}" if values else "-" for values in _sides(result)
    ]
    limit = f"{number(result.limit)} {row.unit}" if result.limit else ""
    floor = f"{row.better.value} {row.floor:g}{' of its own' if row.of_own else ''}"
    verdict = ("pass" if result.holds else "FAIL") if result.is_judged else ""
    ratio = "-"
    if result.ratios:
        ratio = f"{result.ratio:.2f} ({min(result.ratios):.2f} to {max(result.ratios):.2f})"
    return (row.title, *median, limit, ratio, floor, verdict)


def _sides(result: Result) -> tuple[list[float], list[float]]:
    return result.ours, result.theirs


def table(results: Sequence[Result], console: Console) -> None:
    shown = Table(title="Barnabas and Apache Kafka, in turns on the same machine")
    for name in HEAD:
        shown.add_column(name, justify="left" if name in ("row", "") else "right", overflow="fold")
    for result in results:
        values = cells(result)
        style = {"pass": "green", "FAIL": "bold red"}.get(values[-1])
        shown.add_row(*values[:-1], f"[{style}]{values[-1]}[/]" if style else "")
    console.print(shown)


def markdown(results: Sequence[Result], machine: Sequence[tuple[str, str]], notes: str = "") -> str:
    lines = [
        "# Benchmarks",
        "",
        *INTRODUCTION.strip().splitlines(),
        "",
        "| " + " | ".join(HEAD) + " |",
        "|" + " --- |" * len(HEAD),
        *("| " + " | ".join(cells(result)) + " |" for result in results),
        "",
        f"![ratios]({PLOT})",
        "",
        "## Machine",
        "",
        f"- date: {datetime.date.today().isoformat()}",
        *(f"- {name}: {value}" for name, value in machine),
        "",
        "## What the rows mean",
        "",
        *MEANING.strip().splitlines(),
        "",
    ]
    return "\n".join(lines) + notes


def plot(results: Sequence[Result], path: Path) -> None:
    """How many times better than Apache Kafka, on a logarithmic scale; a mark where the floor lies."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "bench"
    from matplotlib import pyplot

    shown = [result for result in results if result.ratios]
    figure, axes = pyplot.subplots(figsize=(9, 0.42 * len(shown) + 1.4))
    for place, result in enumerate(reversed(shown)):
        gains = sorted(_gain(result, ratio) for ratio in result.ratios)
        gain, floor = _gain(result, result.ratio), _gain(result, result.row.floor)
        axes.barh(place, gain - 1, left=1, color="#3b7dd8" if result.holds else "#d8593b", height=0.6)
        axes.plot([gains[0], gains[-1]], [place, place], color="#222222", linewidth=1)
        axes.plot([floor, floor], [place - 0.38, place + 0.38], color="#222222", linewidth=2)
        axes.annotate(f" {gain:.1f}x", (max(gains[-1], floor, 1), place), va="center", fontsize=8)
    axes.set_yticks(range(len(shown)), [result.row.title for result in reversed(shown)])
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.axvline(1, color="#888888", linewidth=1)
    axes.margins(x=0.12)
    axes.set_xlabel("times better than Apache Kafka (thick mark: the floor; line: spread of the rounds)")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _gain(result: Result, ratio: float) -> float:
    return ratio if result.row.better is Better.MORE else 1 / ratio


INTRODUCTION = """
Each row is measured on Barnabas and on Apache Kafka in the same run, alternately, after a warm-up of both
with the same load (Java's compiler is done by then). Load generator and brokers share the machine's cores. A
ratio is Barnabas divided by Apache Kafka: the median over the rounds, with the lowest and the highest round.
The "bare server" responds to each frame and does nothing else: the best that the machine allows.

`make bench` measures again and rewrites this page; `python -m bench --help` says how to run single rows.
Pages of their own: [three nodes](benchmarks-cluster.md),
[Spark's source and sink](benchmarks-spark.md), [pipelines](benchmarks-pipeline.md).
"""

MEANING = """
- **produce**: raw Produce requests (version 12, acks=1) with prepared, uncompressed batches on one partition:
  880 records of 1,000 bytes in a batch with four requests in flight, 139 records of 100 bytes with 64, one
  record of 100 bytes with 512 on one connection; or 64 connections that each wait for the response before
  the next request. Rows that say so use version 7, as many clients do, or four partitions in turns from four
  connections with 16 requests each; requests for five partitions have one record each and 128 in flight.
  Before each round the page cache is filled with as much as the round writes, and emptied: a virtual machine
  gets a page from its host on first touch, which costs both brokers more than the write itself.
- **at rest**: the median time of one-record requests, one after the other on one connection.
- **fetch**: one consumer, raw Fetch requests (version 11) of 1 MiB, one after the other, over a backlog of
  15 KB batches in the page cache.
- **TLS**: the same requests through a listener with TLS 1.3 and an elliptic-curve certificate. A connection
  counts when it has shaken hands and its first request (ApiVersions) is answered; 32 at a time.
- **confluent-kafka**: one producer fed in lists of 10,000 records of 100 bytes (acks=1); one consumer taking
  lists of up to 10,000 (`fetch.queue.backoff.ms=1`: by default librdkafka stops fetching for a second
  whenever 100,000 records wait, which would hide the broker).
- **produce to consume**: from `produce` to the return of `poll` in one Python process, one record after the
  other, `linger.ms=0`.
- **start to first response**: from spawning the process on a formatted folder to its response to ApiVersions.
- **memory**: the process's proportional share (PSS), two seconds after the start and after all kinds of load.
- **4,000 partitions**: 40 topics of 100 partitions. Created, and restarted after a clean stop, until every
  partition responds to ListOffsets.
- **groups**: raw classic members (JoinGroup version 5), a connection each, with one partition of
  `__consumer_offsets` and `group.initial.rebalance.delay.ms=0`. From the first join until every member of the
  complete group has read a record of its own partition; and from the leave of one until the other 99 have.
- **offset commits**: OffsetCommit requests (version 7) of one partition, 512 in flight on one connection, or
  of 10,000 groups in turn on 16 connections with 32 each.
- **memory per 1,000 groups**: the memory that 10,000 groups of one member and one offset add to the process
  (to Java's heap, after a garbage collection).
- **share groups**: raw members (ShareFetch version 2), a connection each, that share ten partitions with
  15 KB batches; each fetches up to 500 records and accepts them with its next fetch. *Acquire to acknowledge*
  is the time from a fetch of ten records to the response to their ShareAcknowledge, of ten members in turn.
  A million records are in flight in a hundred partitions when one record in the middle of each batch is
  accepted and the others are not; the memory is that of the process (PSS).
- **longest wait**: of one producer that writes a record at a time, while another client creates 100 topics of
  100 partitions, sends a record to each in one request, requests the metadata and the end offsets of all,
  commits an offset for each in one request, and deletes them; while 64 logs are read and written that have
  left the page cache; while 50,000 groups commit, are listed and loaded; while a group of 500 members is
  assigned 5,000 partitions. `python -m bench.stalls` shows the broker's own part of a wait, and the time that
  the file system alone takes for the files of a new partition. `python -m bench.cluster_stalls` (or
  `python -m bench.cluster many-100k`) measures a cluster of three with 100,000 partitions.
- **10,000 ACLs**: the caller is no super user. A rule for the topic allows it; a hundred prefixed rules of
  other users cover the topic too. The second row compares with the same broker without an
  authorizer, by CPU time.
- **SCRAM logins**: four clients connect, log in with SCRAM-SHA-512 (4,096 iterations, salted password kept)
  and close, again and again.
"""
