"""Assignors of others are found by the entry point that the settings name."""

from __future__ import annotations

import pytest

from barnabas.broker.coordinators.assignor_plugins import load
from barnabas.groups.assignors.range import RangeAssignor
from barnabas.settings.errors import SettingsError


def test_entry_points_are_loaded_and_names_of_built_in_ones_are_left_alone() -> None:
    found = load(["uniform", "barnabas.groups.assignors.range:RangeAssignor"])

    assert list(found) == ["barnabas.groups.assignors.range:RangeAssignor"]
    assert isinstance(found["barnabas.groups.assignors.range:RangeAssignor"], RangeAssignor)


@pytest.mark.parametrize("name", ["no.such:Thing", "barnabas.groups.assignors.range:Nothing"])
def test_an_entry_point_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=r"group\.consumer\.assignors: it cannot be created"):
        load([name])


def test_what_is_no_assignor_is_refused() -> None:
    with pytest.raises(SettingsError, match="an assignor has a `name`"):
        load(["collections:OrderedDict"])
