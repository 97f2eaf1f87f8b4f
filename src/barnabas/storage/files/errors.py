"""What storage says when it cannot: one line for a person, or an error code for a client.

`StorageError` stops a start (a folder that is locked, foreign, unwritable, not understood). While running, a
failing disk is `KafkaError(KAFKA_STORAGE_ERROR)`, which takes its log dir offline. A process that lacks
descriptors or memory raises `Shortage` instead: the same code, and the dir stays.
"""

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.shortage import Shortage, is_shortage


class StorageError(Exception):
    """Why a log dir cannot be used, and what to do about it."""


def disk_failure(doing: str, path: str, error: OSError) -> KafkaError:
    reason = error.strerror or str(error)
    message = f"could not {doing} {path}: {reason}"
    return Shortage(message) if is_shortage(error) else KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)


def is_disk_error(error: OSError) -> bool:
    """Whether the next operation on that disk will hardly do better (an error of the device, no room left,
    read-only), unlike one that only lacked descriptors or memory."""
    return not is_shortage(error)
