"""Which tests one worker runs one after another, and which of these groups begin first.

In: ids of tests, as pytest writes them, and how long they took before, where that is known. Out: the name of
a test's group; an order of groups. A file is a group of its own unless a rule below says otherwise, so a new
file needs no entry here. Files are read to see whether they need Spark. Does not know: pytest, xdist.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

# Tests that share what takes long to start: one worker starts it, once. The longest prefix decides.
APACHE = "Apache Kafka"  # the node of all tests
SPARK = "Spark"
TOGETHER = {
    "tests/cli/test_transcripts.py": APACHE,
    "tests/connect/jobs/": SPARK,
    "tests/interop/test_same_answers.py": APACHE,
    "tests/interop/test_streams_records.py": APACHE,
}

# A Java machine for Spark takes ten seconds of a processor to start and many more until its code is compiled,
# so all tests with a session go to one worker. It keeps its machine when folders have sessions of their
# own; its class path stays that of the first. New files are found by what they say.
ASKS_FOR_SPARK = re.compile(
    r"^def \w+\([^)]*\bspark: |^from barnabas\.engine\.session import .*\bsession\b", re.MULTILINE
)
# It failed in a process where another session of Spark was still there.
ALONE = {"tests/streams/spark/test_conductor.py"}
ROOT = Path(__file__).parents[2]

# Tests that share nothing: a file of these is cut into tests, which any worker may run.
APART = ("tests/soak/",)

# Without the durations of an earlier run: what takes longest begins first, so that no worker ends alone.
# Files that took 18 seconds and more, then folders with many long tests.
BEGIN_FIRST = (
    SPARK,
    APACHE,
    "tests/simulation/test_histories",
    "tests/cluster/test_replication",
    "tests/mutations/",
    "tests/pipeline/test_serving_http",
    "tests/hostile/test_difficult_connections",
    "tests/interop/test_kafka_tools",
    "tests/storage/test_apache",
    "tests/simulation/test_bugs",
    "tests/clients/test_groups",
    "tests/cluster/test_kills",
    "tests/clients/test_quotas",
    "tests/simulation/test_cluster",
    "tests/spark/test_examples",
    "tests/registry/test_kills",
    "tests/broker/test_cleaning",
    "tests/monitor/alerts/",
    "tests/cluster/",
    "tests/interop/",
    "tests/crash/",
    "tests/security/",
    "tests/spark/",
    "tests/clients/",
    "tests/soak/",
)


def group_of(test_id: str) -> str:
    """The group of a test: all tests of a group are run by one worker."""
    path = test_id.partition("::")[0]
    rules = [prefix for prefix in (*TOGETHER, *APART) if path.startswith(prefix)]
    rule = max(rules, key=len, default=None)
    if rule is None:
        return group_with_spark(path) or path
    return TOGETHER.get(rule) or test_id


@functools.cache
def group_with_spark(path: str) -> str | None:
    """The group of a file whose tests need a session of Spark; None for other files."""
    place = ROOT / path
    if path in ALONE or not place.is_file() or not ASKS_FOR_SPARK.search(place.read_text()):
        return None
    return SPARK


def in_order(test_ids: Iterable[str], seconds: Mapping[str, float]) -> list[str]:
    """The tests by group, longest group first. Inside a group the folders come one after the other, because
    pytest mixes tests of folders that have a parameter of the same name, and a folder that is left ends its
    session of Spark; inside a folder tests stay as they are."""
    groups: dict[str, list[str]] = {}
    for test_id in test_ids:
        groups.setdefault(group_of(test_id), []).append(test_id)

    def rank(group: str) -> tuple[float, int, int]:
        known = sum(seconds.get(test_id, 0.0) for test_id in groups[group])
        first = next((at for at, name in enumerate(BEGIN_FIRST) if group.startswith(name)), len(BEGIN_FIRST))
        return -known, first, -len(groups[group])

    return [test_id for group in sorted(groups, key=rank) for test_id in by_folder(groups[group])]


def by_folder(test_ids: Iterable[str]) -> list[str]:
    folders: dict[str, list[str]] = {}
    for test_id in test_ids:
        folders.setdefault(test_id.partition("::")[0].rpartition("/")[0], []).append(test_id)
    return [test_id for folder in folders.values() for test_id in folder]
