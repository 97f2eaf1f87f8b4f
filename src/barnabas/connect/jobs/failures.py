"""Judgement of a failed Spark job: its task fails, or tries again because something is away.

Connect's rule is that a RetriableError is tried again and any other error fails the task. Errors of executors
arrive as text of Spark, so the error is read from the traceback in it. Executors and servers that are away
are no errors of the connector: they are tried again too. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from barnabas.client.core.errors import AuthenticationError, ClientError, UnsupportedApi
from barnabas.connect.plugins import RetriableError
from barnabas.engine.errors import FULL_DISK, brief, brief_text
from barnabas.protocol import ErrorCode, KafkaError

TRACEBACK = "Traceback (most recent call last):"
ERROR_LINE = re.compile(r"(?P<name>[\w.<>]+)(?:: (?P<text>.*))?")
# Executors, their machines or the cluster are gone, or what a job of Java reads is.
AWAY = re.compile(
    r"ExecutorLostFailure|ExecutorDeadException|FetchFailed|Python worker exited unexpectedly"
    r"|SparkContext (?:was shut down|has been shutdown)|heartbeat timed out|Master removed our application"
    r"|java\.net\.\w+Exception|SQLTransient\w*Exception|SQLRecoverableException"
    r"|SQLNonTransientConnectionException"
)


def may_pass(error: BaseException) -> bool:
    """Whether a new attempt of the same operation may work: the word of the connector or of the client."""
    if isinstance(error, KafkaError):
        return error.code.retriable
    if isinstance(error, ClientError):
        return not isinstance(error, (AuthenticationError, UnsupportedApi))
    if isinstance(error, RetriableError):
        return True
    found = python_error(str(error))
    return found is not None and found[0] in retriable_names(found[1])


def is_away(error: BaseException) -> bool:
    """Whether Spark lost executors, or its job what it reads. Code that failed on an executor is not away."""
    text = str(error)
    if FULL_DISK.search(text):
        return True
    return python_error(text) is None and AWAY.search(text) is not None


def python_error(text: str) -> tuple[str, str] | None:
    """The name, with its module, and the text of the error in the last Python traceback of a message."""
    _, found, last = text.rpartition(TRACEBACK)
    if not found:
        return None
    for line in last.splitlines():
        if line and not line[0].isspace() and (made := ERROR_LINE.fullmatch(line)) is not None:
            return made["name"], made["text"] or ""
    return None


def short(error: BaseException) -> str:
    """An error in one line: of an executor that which Python ended with, of Python itself with its name."""
    found = python_error(str(error))
    if found is not None:
        name = found[0].rpartition(".")[2]
        return brief_text(f"{name}: {found[1]}" if found[1] else name)
    if type(error).__module__.partition(".")[0] in ("pyspark", "py4j"):
        return brief(error)
    return brief_text(f"{type(error).__name__}: {error}")


def named(kind: type[BaseException]) -> Iterator[str]:
    """The names of a class and of those made from it, as tracebacks show them."""
    yield f"{kind.__module__}.{kind.__qualname__}"
    for each in kind.__subclasses__():
        yield from named(each)


def retriable_names(text: str) -> set[str]:
    """Names of errors that may pass, if this is their text: KafkaError begins with its code."""
    found = {*named(RetriableError), *named(ClientError)}
    found -= {*named(AuthenticationError), *named(UnsupportedApi)}
    code = ErrorCode.__members__.get(text.partition(":")[0])
    return found if code is None or not code.retriable else {*found, *named(KafkaError)}
