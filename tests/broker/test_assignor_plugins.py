"""Assignors from other packages, loaded by the entry points in the settings."""

from __future__ import annotations

import pytest

from barnabas.broker.coordinators.assignor_plugins import load
from barnabas.groups.assignors.range import RangeAssignor
from barnabas.settings.errors import SettingsError


def test_loads_entry_points_and_skips_names_of_built_in_assignors() -> None:
    found = load(["uniform", "barnabas.groups.assignors.range:RangeAssignor"])

    assert list(found) == ["barnabas.groups.assignors.range:RangeAssignor"]
    assert isinstance(found["barnabas.groups.assignors.range:RangeAssignor"], RangeAssignor)


@pytest.mark.parametrize("name", ["no.such:Thing", "barnabas.groups.assignors.range:Nothing"])
def test_a_missing_entry_point_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=r"group\.consumer\.assignors: it cannot be created"):
        load([name])


def test_an_object_without_assign_is_refused_as_assignor() -> None:
    with pytest.raises(SettingsError, match="an assignor has a `name`"):
        load(["collections:OrderedDict"])
