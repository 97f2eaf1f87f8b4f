"""Errors while a pipeline runs, and whether a retry helps.

In: failures of sources, Spark and the lake. Out: one of a few errors, with a message for people.
Does not know: retries.
"""

from __future__ import annotations

import re

from barnabas.engine.secrets import scrubbed

FULL_DISK = re.compile(r"No space left on device|Disk quota exceeded|DiskOutOfSpace", re.IGNORECASE)
# Delta's errors after a concurrent commit.
CONFLICT = re.compile(
    r"Concurrent\w*Exception|DELTA_CONCURRENT|DELTA_METADATA_CHANGED|ProtocolChangedException"
)
# Errors of database drivers and of our own fetcher.
AWAY = re.compile(
    r"PSQLException|SQLite\w*Exception|java\.sql\.SQL\w*Exception|CommunicationsException|JDBCConnection"
    r"|Unreachable|BootstrapError|KafkaError|CannotDecode|RegistryError"
)
MESSAGE_CHARS_MAX = 500


class IngestError(Exception):
    """A batch could not be written to all zones. No row is lost or written twice."""

    retryable = True


class SourceUnavailable(IngestError):
    """The source does not answer. It is tried again; other sources go on."""


class LakeUnavailable(IngestError):
    """The lake cannot be written: full, read-only, or not reachable."""


class CommitConflict(IngestError):
    """Another writer changed a table at the same time. The next attempt finishes the batch."""


class NeedsDecision(IngestError):
    """A person has to decide: unknown fields, a lake of another pipeline, a column of another type."""

    retryable = False


class ForeignLake(NeedsDecision):
    """The lake's commits were made by another pipeline."""


def brief(error: BaseException) -> str:
    """An error in one line, without Java's stack and without secrets."""
    return brief_text(str(error)) or type(error).__name__


def brief_text(message: str) -> str:
    """The text of an error in one line; empty if there is none."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        lines = lines[1:]  # a line of Py4J; Java's message follows
    text = lines[0].lstrip(": ") if lines else ""
    causes = [line for line in lines if line.startswith("Caused by:")]
    if causes and causes[-1] not in text:
        text = f"{text} ({causes[-1].removeprefix('Caused by: ')})"
    return scrubbed(text)[:MESSAGE_CHARS_MAX]


def classified(error: BaseException, doing: str) -> IngestError:
    """Classify an error of Spark or Delta; `doing` says what failed."""
    if isinstance(error, IngestError):
        return error
    text = str(error)
    if isinstance(error, MemoryError) or FULL_DISK.search(text):
        return LakeUnavailable(
            f"{doing}: the disk is full; the batch is repeated when there is space ({brief(error)})"
        )
    if CONFLICT.search(text):
        return CommitConflict(f"{doing}: another writer committed first ({brief(error)})")
    if AWAY.search(text):
        return SourceUnavailable(f"{doing}: the source does not answer ({brief(error)})")
    if re.search(r"Permission denied|Read-only file system|UnknownHost|Connection refused", text):
        return LakeUnavailable(f"{doing}: the lake cannot be written ({brief(error)})")
    return IngestError(f"{doing}: {brief(error)}")
