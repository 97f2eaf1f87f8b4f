"""Reset plans as CSV: --from-file reads the output of --export."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.groups.consumer_groups_plan import csv_text, read_plan
from barnabas.client.core.topology import TopicPartition

NAMES = st.text("abcXYZ019._-", min_size=1, max_size=20)
GROUPS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1, max_size=10)
PARTITIONS = st.builds(TopicPartition, NAMES, st.integers(0, 2**31 - 1))
PLANS = st.dictionaries(
    GROUPS, st.dictionaries(PARTITIONS, st.integers(0, 2**63 - 1), min_size=1, max_size=3), max_size=3
)


@given(plan=PLANS)
def test_a_plan_of_several_groups_is_read_back(
    plan: dict[str, dict[TopicPartition, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("plan") / "plan.csv"
    path.write_text(csv_text(plan, with_groups=True), encoding="utf-8")
    assert read_plan(str(path), None) == plan


def test_a_plan_without_groups_belongs_to_the_given_group(tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    path.write_text(csv_text({"any": {TopicPartition("t", 1): 7}}, with_groups=False))
    assert path.read_text() == "t,1,7\n"
    assert read_plan(str(path), "readers") == {"readers": {TopicPartition("t", 1): 7}}


@pytest.mark.parametrize("line", ["t;0;1", "t,0", "t,zero,1", "t,0,x", "g,t,0,1,2"])
def test_an_error_names_the_malformed_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "plan.csv"
    path.write_text(f"t,0,5\n{line}\n")
    with pytest.raises(ToolError, match=rf"plan\.csv, line 2: '{line}' is not topic,partition,offset"):
        read_plan(str(path), "readers")


def test_lines_without_a_group_need_one_group(tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    path.write_text("t,0,5\n")
    with pytest.raises(ToolError, match="is not group,topic,partition,offset"):
        read_plan(str(path), None)
