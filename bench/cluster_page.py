"""The page of `bench.cluster`: the table of both clusters, the phases with many partitions, and the notes.

In: what a run measured. Out: `docs/benchmarks-cluster.md`; a run keeps the parts that it did not measure, and
the notes. Does not know: how values are measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench import cluster_stalls
from bench.cluster_stalls import Phase
from bench.rows import STALL_MS_MAX

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks-cluster.md"
HEADS = ("row", "Barnabas", "Apache Kafka", "ratio", "floor", "")
SECTION = "\n## 100,000 partitions and 50,000 groups\n"
NOTES = "\n## Notes\n"


def write(*, first: str, many: str) -> None:
    """Write the parts that are not empty."""
    PAGE.write_text(merged(PAGE.read_text(), first=first, many=many))


def merged(text: str, *, first: str, many: str) -> str:
    """The page with these parts instead of its own, unless they are empty."""
    text, mark, notes = text.partition(NOTES)
    known, heading, phases = text.partition(SECTION)
    return (first or known) + (many or heading + phases) + mark + notes


def first(found: Sequence[tuple[str, ...]], rounds: int, relay_us: float) -> str:
    return f"""# Three nodes against three of Apache Kafka

`python -m bench.cluster --rounds {rounds}`: both clusters run side by side on this machine (two shared cores)
and are measured alternately; values are medians of the rounds. Topics have three replicas. Writes wait for
all in-sync replicas and use one connection (32 requests of 15 KB in flight, or 4 of 880 KB). The rows with
ten thousand partitions (of ten topics, a record in each) use clusters of their own, one after the other: two
of the nodes are killed and started again, then one is stopped and started. Ratios are Barnabas divided by
Apache Kafka. Four processes that only pass a record on and write it (`python -m bench.relay`) take
{relay_us:.0f} µs for one produce.

{table(HEADS, found)}
"""


def section(phases: Sequence[Phase], partitions: int, replicated: int, groups: int, load: float) -> str:
    limit = f"{STALL_MS_MAX:.0f} ms"
    return f"""{SECTION}
`python -m bench.cluster many-100k`, or `python -m bench.cluster_stalls --kill`: three nodes of Barnabas with
{partitions:,} partitions, {replicated:,} of them with three replicas, and {groups:,} groups. The load of the
machine was {load:.1f} before. A producer writes one record at a time to each node. The table has its longest
wait and its median, and the longest turn of any node's loop: by the clock, without the time that the node
waited for a processor, and in processor time; then the number of turns whose own part was above {limit}, and
the memory of the largest node. The limit is {limit}. `pass`: the wait and the processor time are below it.
`late`: only the wait is above it, so the producer waited for the disk, for another thread of the node, or for
a processor that others used. `FAIL`: a loop worked longer in one turn. The first phase is the control:
nothing disturbs the producers.

{table(cluster_stalls.HEADS, [phase.cells() for phase in phases])}
"""


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [heads, ["---"] * len(heads), *rows])
