"""Shortages: the process has temporarily no descriptors, memory or threads left.

In: an exception. Out: whether it means a shortage. The affected request is refused, or the work is retried
after `RETRY_S`. A shortage never stops a node and never takes a log dir offline.
"""

import errno

from barnabas.protocol import ErrorCode, KafkaError

RETRY_S = 0.1
ERRNOS = frozenset(
    (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EAGAIN, errno.EINTR)
)  # errors of the process or the operating system, not of a disk
_NO_THREAD = "can't start new thread"


class Shortage(KafkaError):
    """A temporary storage error: the operation may succeed when it is tried again."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)


def is_shortage(error: BaseException | None) -> bool:
    """Whether trying again may help."""
    if isinstance(error, OSError):
        return error.errno in ERRNOS
    if isinstance(error, RuntimeError):
        return str(error).startswith(_NO_THREAD)
    return isinstance(error, Shortage | MemoryError)
