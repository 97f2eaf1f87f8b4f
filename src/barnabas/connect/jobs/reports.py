"""Reports of a job's pieces on executors to the driver: counts, the last error, why it could not go on.

Failures of connectors travel as reports, not as errors of Spark: so their text and the coordinates of their
record arrive unchanged, and Spark does not try again what cannot work. Pure.
"""

from __future__ import annotations

import json
import traceback
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from os import getpid
from typing import Any

from barnabas.client.core.traffic import Traffic
from barnabas.connect.jobs.failures import may_pass
from barnabas.connect.plugins import ConnectError, FencedError, RetriableError
from barnabas.connect.tasks.progress import LastError, Progress
from barnabas.connect.tasks.task_clients import grown

PRODUCER, CONSUMER = "producer", "consumer"
HOSTS_SHOWN_MAX = 5
TRACE_CHARS_MAX = 20_000
KINDS = {"failed": ConnectError, "retry": RetriableError, "fenced": FencedError}


# Of what was read or written: topic, partition, first offset and the one behind the last (-1: not known),
# timestamps, each with a number of records and the sum of their contents, if it is known.
Counts = tuple[str, int, int, int, list[tuple[int, int, int | None]]]


@dataclass(slots=True)
class Report:
    host: str = ""
    piece: int = 0  # the number of the Spark partition
    records_in: int = 0
    records_out: int = 0
    topics: list[str] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)  # partitions that were written to
    counts: list[Counts] = field(default_factory=list)
    errors: int = 0
    skipped: int = 0
    retries: int = 0
    errors_logged: int = 0
    dead_letters: int = 0
    last_error: dict[str, Any] | None = None
    kind: str = ""  # of the failure: a key of KINDS
    failure: str = ""
    trace: str = ""  # of the failure, on its executor
    process: int = 0
    traffic: dict[str, dict[str, int]] = field(default_factory=dict)  # of clients, by kind

    @classmethod
    def of(cls, progress: Progress, host: str, piece: int) -> Report:
        """The counts that error handling left in a progress."""
        return cls(
            host=host,
            piece=piece,
            errors=progress.errors,
            skipped=progress.skipped,
            retries=progress.retries,
            errors_logged=progress.errors_logged,
            dead_letters=progress.dead_letters,
            last_error=None if progress.last_error is None else asdict(progress.last_error),
        )

    def used(self, kind: str, before: Traffic, after: Traffic) -> None:
        """Note what a client of this piece has sent and received between two moments."""
        self.process, self.traffic[kind] = getpid(), grown(before, after)

    def failed(self, error: BaseException) -> None:
        name = type(error).__name__
        self.failure = str(error) if isinstance(error, ConnectError) else f"{name}: {error}"
        if isinstance(error, FencedError):
            self.kind = "fenced"
        else:
            self.kind = "retry" if may_pass(error) or isinstance(error, TimeoutError) else "failed"
        self.trace = "".join(traceback.format_exception(error))[-TRACE_CHARS_MAX:]

    def text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> Report:
        return cls(**json.loads(text))


def note(reports: Iterable[Report], progress: Progress) -> None:
    """Add what executors counted to the progress of the task, and say where rows were."""
    found = list(reports)
    for each in found:
        progress.errors += each.errors
        progress.skipped += each.skipped
        progress.retries += each.retries
        progress.errors_logged += each.errors_logged
        progress.dead_letters += each.dead_letters
        if each.last_error is not None:
            progress.last_error = LastError(**each.last_error)
    for kind in sorted({kind for each in found for kind in each.traffic}):
        pieces = [((each.host, each.process), each.traffic[kind]) for each in found if kind in each.traffic]
        progress.executors[kind].add(pieces)
    progress.places = places_of(found) or progress.places


def places_of(reports: list[Report]) -> str:
    """`4 pieces on host-a (3, 3000 records), host-b (1, 900 records)`."""
    if not reports:
        return ""
    pieces, records = Counter[str](), Counter[str]()
    reads = any(each.records_in for each in reports)  # pieces that only write count no record again
    for each in reports:
        pieces[each.host] += 1
        records[each.host] += each.records_in if reads else each.records_out
    hosts = [f"{host} ({pieces[host]}, {records[host]} records)" for host in sorted(pieces)]
    more = "" if len(hosts) <= HOSTS_SHOWN_MAX else f" and {len(hosts) - HOSTS_SHOWN_MAX} more hosts"
    word = "piece" if len(reports) == 1 else "pieces"
    return f"{len(reports)} {word} on {', '.join(hosts[:HOSTS_SHOWN_MAX])}{more}"


def check(reports: Iterable[Report]) -> None:
    """Raise the failure of a piece, with its trace as a note."""
    failures = [each for each in reports if each.failure]
    if failures:
        worst = min(failures, key=lambda each: (each.kind == "retry", each.piece))
        error = KINDS[worst.kind](worst.failure)
        error.add_note(f"On the executor {worst.host}:\n{worst.trace}")
        raise error
