"""Shortages: the process lacks descriptors, memory or threads for a moment.

In: an exception. Out: whether it tells of a shortage. A shortage passes: the request that meets it is
refused, or the work is tried again after `RETRY_S`. It never stops a node and never takes a log dir offline.
"""

import errno

from barnabas.protocol import ErrorCode, KafkaError

RETRY_S = 0.1
ERRNOS = frozenset(
    (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EAGAIN, errno.EINTR)
)  # of the process or the whole system, not of a disk
_NO_THREAD = "can't start new thread"


class Shortage(KafkaError):
    """A storage error that passes: the operation may succeed when it is tried again."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)


def is_shortage(error: BaseException | None) -> bool:
    """Whether trying again may help."""
    if isinstance(error, OSError):
        return error.errno in ERRNOS
    if isinstance(error, RuntimeError):
        return str(error).startswith(_NO_THREAD)
    return isinstance(error, Shortage | MemoryError)
