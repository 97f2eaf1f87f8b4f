"""What storage says when it cannot: one line for a person, or an error code for a client.

`StorageError` stops a start (a folder that is locked, foreign, unwritable, not understood). While running, a
failing disk is `KafkaError(KAFKA_STORAGE_ERROR)`, which takes its log dir offline.
"""

from barnabas.protocol import ErrorCode, KafkaError


class StorageError(Exception):
    """Why a log dir cannot be used, and what to do about it."""


def disk_failure(doing: str, path: str, error: OSError) -> KafkaError:
    reason = error.strerror or str(error)
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"could not {doing} {path}: {reason}")
