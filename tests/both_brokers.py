"""Tests of clients and tools run on our broker, and with `--apache` on Apache Kafka too."""

from __future__ import annotations

from typing import Literal

import pytest

NEVER_MS = 86_400_000
KEEPS_ALL = {  # tests produce records of any age; none of them is to disappear while they look
    "log.retention.check.interval.ms": NEVER_MS,
    "log.initial.task.delay.ms": NEVER_MS,
}

SHARES_SOON = {  # members of share groups hear of their partitions with the next heartbeat
    "group.share.min.heartbeat.interval.ms": 100,
    "group.share.heartbeat.interval.ms": 100,
}


def parametrize_broker(metafunc: pytest.Metafunc, scope: Literal["module", "session"] = "module") -> None:
    """For `pytest_generate_tests` of a folder whose fixture `broker` takes the kind as its parameter.

    A broker in the process of the tests lives for one file: tests of other files plant bugs in its classes.
    """
    if "broker" in metafunc.fixturenames:
        kinds: list[object] = ["barnabas"]
        if metafunc.config.getoption("--apache"):
            kinds.append(pytest.param("apache", marks=pytest.mark.java))
        metafunc.parametrize("broker", kinds, indirect=True, scope=scope)
