"""Versions that configurations demand of plugins. What Apache says to them is in `tests/connect/rest`."""

from __future__ import annotations

from itertools import pairwise

import pytest

from barnabas.connect.plugins import Kind, Known
from barnabas.connect.plugins.versions import compare, mismatch

ORDER = (
    *("1-alpha", "1-alpha2", "1-beta", "1-m3", "1-rc1", "1-SNAPSHOT"),
    *("1.0", "1-sp", "1-jre", "1.0.1", "1.2", "1.10", "2"),
)
SAME = (("1", "1.0.0"), ("1-ga", "1"), ("1.A1", "1.alpha-1"), ("1.0-rc1", "1-RC1"), ("1.0", "1.0-final"))


def test_versions_are_ordered_as_maven_orders_them() -> None:
    assert all(compare(one, other) < 0 < compare(other, one) for one, other in pairwise(ORDER))
    assert all(compare(one, other) == 0 for one, other in SAME)


def test_a_version_of_which_there_is_none_names_those_that_are() -> None:
    assert mismatch("p.Q", "4.3.1", "[4,5)") is None
    assert mismatch("p.Q", "4.3.1", "[1,2],(3,)") is None
    assert mismatch("p.Q", "4.3.1", "(4.3.1,)") == (
        "Plugin p.Q not found that matches the version range (4.3.1,), available versions: [4.3.1]"
    )
    with pytest.raises(ValueError, match="Unbounded range"):
        mismatch("p.Q", "4.3.1", "[4")


def test_plugins_that_stand_for_apaches_have_their_version() -> None:
    assert Known(Kind.SOURCE, "a:B", ("org.apache.kafka.connect.file.X",), "7").version == "4.3.1"
    assert Known(Kind.SOURCE, "a:B", ("io.debezium.X",), "7").version == "7"
