"""Errors of storage: one line for the operator, or an error code for a client.

`StorageError` stops a start: a log dir is locked, belongs to another node, is not writable, or has an unknown
format. While the node runs, a failing disk is `KafkaError(KAFKA_STORAGE_ERROR)` and takes its log dir
offline. A temporary shortage of descriptors or memory is a `Shortage`: the same error code, but the dir stays
online.
"""

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.shortage import Shortage, is_shortage


class StorageError(Exception):
    """A log dir cannot be used. The message says why and what to do."""


def disk_failure(doing: str, path: str, error: OSError) -> KafkaError:
    reason = error.strerror or str(error)
    message = f"could not {doing} {path}: {reason}"
    return Shortage(message) if is_shortage(error) else KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)


def is_disk_error(error: OSError) -> bool:
    """Whether the disk has failed (a device error, no space left, read-only), not just a shortage of
    descriptors or memory in this process."""
    return not is_shortage(error)
