"""What can go wrong while a pipeline runs, and whether trying again helps.

In: failures of sources, Spark and the lake. Out: one of four errors with a sentence for people.
Does not know: who tries again.
"""

from __future__ import annotations

import re

from barnabas.pipeline.engine.secrets import scrubbed

FULL_DISK = re.compile(r"No space left on device|Disk quota exceeded|DiskOutOfSpace", re.IGNORECASE)
# What Delta says of a commit that somebody else made meanwhile.
CONFLICT = re.compile(
    r"Concurrent\w*Exception|DELTA_CONCURRENT|DELTA_METADATA_CHANGED|ProtocolChangedException"
)
# What drivers of databases and our own fetcher say.
AWAY = re.compile(
    r"PSQLException|SQLite\w*Exception|java\.sql\.SQL\w*Exception|CommunicationsException|JDBCConnection"
    r"|Unreachable|BootstrapError|KafkaError"
)
MESSAGE_CHARS_MAX = 500


class IngestError(Exception):
    """A batch could not be carried through the zones; nothing of it is lost or doubled."""

    retryable = True


class SourceUnavailable(IngestError):
    """The source does not answer now: the rest goes on, this one is tried again."""


class LakeUnavailable(IngestError):
    """The lake cannot be written now: full, read-only, or not reachable."""


class CommitConflict(IngestError):
    """Somebody else changed a table at the same time: the batch is finished by the next attempt."""


class NeedsDecision(IngestError):
    """Somebody has to decide: fields that drift, a lake of another pipeline, a column of another type."""

    retryable = False


class ForeignLake(NeedsDecision):
    """The lake's commits were made by another pipeline."""


def brief(error: BaseException) -> str:
    """One line of an error, without Java's stack and without secrets."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        lines = lines[1:]  # Py4J's own words; Java's come behind a colon
    text = lines[0].lstrip(": ") if lines else type(error).__name__
    causes = [line for line in lines if line.startswith("Caused by:")]
    if causes and causes[-1] not in text:
        text = f"{text} ({causes[-1].removeprefix('Caused by: ')})"
    return scrubbed(text)[:MESSAGE_CHARS_MAX]


def classified(error: BaseException, doing: str) -> IngestError:
    """What an error of Spark or Delta means for the one who waits for the batch."""
    if isinstance(error, IngestError):
        return error
    text = str(error)
    if isinstance(error, MemoryError) or FULL_DISK.search(text):
        return LakeUnavailable(
            f"{doing}: the disk is full; the batch is repeated when there is room ({brief(error)})"
        )
    if CONFLICT.search(text):
        return CommitConflict(f"{doing}: another commit came first ({brief(error)})")
    if AWAY.search(text):
        return SourceUnavailable(f"{doing}: the source does not answer ({brief(error)})")
    if re.search(r"Permission denied|Read-only file system|UnknownHost|Connection refused", text):
        return LakeUnavailable(f"{doing}: the lake cannot be written ({brief(error)})")
    return IngestError(f"{doing}: {brief(error)}")
