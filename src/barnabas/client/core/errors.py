"""Failures between a client and a cluster, other than an error code in a response.

A response's error code is raised as `barnabas.protocol.KafkaError`; all here is about reaching a broker.
"""

from barnabas.client.core.address import Address
from barnabas.protocol import ErrorCode, KafkaError


class ClientError(Exception):
    """A cluster cannot be used; the message is one line fit for a person."""


class Unreachable(ClientError):
    """A broker did not answer: trying again, or another broker, may help."""


class ConnectError(Unreachable):
    """No connection could be made."""

    def __init__(self, address: Address, reason: str) -> None:
        super().__init__(f"cannot connect to {address}: {reason}")
        self.address = address
        self.reason = reason


class BootstrapError(Unreachable):
    """None of the bootstrap servers answered."""

    def __init__(self, failures: list[ConnectError]) -> None:
        if len(failures) == 1:
            super().__init__(str(failures[0]))
        else:
            each = "; ".join(f"{failure.address}: {failure.reason}" for failure in failures)
            super().__init__(f"cannot connect to any of the bootstrap servers ({each})")
        self.failures = failures


class ConnectionLost(Unreachable):
    """The connection broke while requests were waiting for their responses."""

    def __init__(self, address: Address, reason: str) -> None:
        super().__init__(f"lost the connection to {address}: {reason}")


class RequestTimeout(Unreachable):
    """A response did not come in time."""

    def __init__(self, address: Address, what: str, timeout_ms: float) -> None:
        super().__init__(f"{address} did not answer {what} within {timeout_ms:.0f} ms")


class AuthenticationError(ClientError):
    """A broker refused the login, or could not prove who it is: trying again does not help."""

    def __init__(self, address: Address, reason: str) -> None:
        super().__init__(f"cannot log in at {address}: {reason}")
        self.address = address
        self.reason = reason


class UnsupportedApi(ClientError):
    """The broker does not offer an API, or no version of it that we speak."""

    def __init__(self, address: Address, api: str, reason: str) -> None:
        super().__init__(f"{address} does not support {api}: {reason}")
        self.api = api


class NoTopic(KafkaError):
    """A topic that was asked for does not exist, or not yet."""

    def __init__(self, name: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
        self.name = name


def check(code: int, message: str | None = None) -> None:
    """Raise the error of a response, if it has one."""
    if code:
        raise error_of(code, message)


def problem_of(code: int, message: str | None = None) -> KafkaError | None:
    """The error of a part of a response, if it has one."""
    return error_of(code, message) if code else None


def error_of(code: int, message: str | None = None) -> KafkaError:
    """The error that a code of a response stands for; a code from the future is an unknown server error."""
    try:
        return KafkaError(ErrorCode(code), message or "")
    except ValueError:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message or f"the broker answered error code {code}")
