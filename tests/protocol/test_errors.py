"""Error codes and the exceptions that carry them."""

from __future__ import annotations

import pickle

from barnabas.protocol import ErrorCode, KafkaError, ProtocolError


def test_every_code_has_a_message() -> None:
    assert all(code.message.endswith(".") for code in ErrorCode)


def test_an_error_without_a_message_has_that_of_its_code() -> None:
    error = KafkaError(ErrorCode.NOT_CONTROLLER)
    assert error.message == ErrorCode.NOT_CONTROLLER.message
    assert str(error) == "NOT_CONTROLLER: This node is not the active controller."


def test_an_error_with_a_message_keeps_it() -> None:
    assert str(KafkaError(ErrorCode.INVALID_CONFIG, "no such setting")) == "INVALID_CONFIG: no such setting"


def test_codes_are_plain_numbers_on_the_wire() -> None:
    assert ErrorCode(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ErrorCode.NONE == 0


def test_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(KafkaError(ErrorCode.INVALID_CONFIG, "why")))
    assert (error.code, error.message) == (ErrorCode.INVALID_CONFIG, "why")
    assert pickle.loads(pickle.dumps(ProtocolError("path", "reason"))).path == "path"
