"""Which tests one worker runs one after another, and which of these groups begin first.

In: ids of tests, as pytest writes them, and how long they took before, where that is known. Out: the name of
a test's group; an order of groups. A file is a group of its own unless a rule below says otherwise, so a new
file needs no entry here. Does not know: pytest, xdist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# Tests that share what takes long to start: one worker starts it, once. The longest prefix decides.
ZONES, VIEWS, TOPICS = "Spark: zones", "Spark: views", "Spark: topics"  # a session each
TOGETHER = {
    "tests/connect/jobs/": TOPICS,
    "tests/pipeline/test_zones_": ZONES,
    "tests/pipeline/test_sources_": VIEWS,
    "tests/pipeline/test_views_": VIEWS,
    "tests/spark/test_batch": TOPICS,
    "tests/spark/test_formats_in_queries": TOPICS,
    "tests/spark/test_sink": TOPICS,
    "tests/spark/test_stream": TOPICS,
}

# Tests that share nothing: a file of these is cut into tests, which any worker may run.
APART = ("tests/soak/",)

# Without the durations of an earlier run: what takes longest begins first, so that no worker ends alone.
BEGIN_FIRST = (
    *(
        ZONES,
        VIEWS,
        TOPICS,
        "tests/pipeline/test_example",
        "tests/simulation/test_cluster",
        "tests/mutations/",
    ),
    *(
        "tests/interop/",
        "tests/cluster/",
        "tests/security/",
        "tests/crash/",
        "tests/spark/",
        "tests/clients/",
        "tests/soak/",
    ),
)


def group_of(test_id: str) -> str:
    """The group of a test: all tests of a group are run by one worker."""
    path = test_id.partition("::")[0]
    rules = [prefix for prefix in (*TOGETHER, *APART) if path.startswith(prefix)]
    rule = max(rules, key=len, default=None)
    if rule is None:
        return path
    return TOGETHER.get(rule) or test_id


def in_order(test_ids: Iterable[str], seconds: Mapping[str, float]) -> list[str]:
    """The tests by group, longest group first; inside a group they stay as they are."""
    groups: dict[str, list[str]] = {}
    for test_id in test_ids:
        groups.setdefault(group_of(test_id), []).append(test_id)

    def rank(group: str) -> tuple[float, int, int]:
        known = sum(seconds.get(test_id, 0.0) for test_id in groups[group])
        first = next((at for at, name in enumerate(BEGIN_FIRST) if group.startswith(name)), len(BEGIN_FIRST))
        return -known, first, -len(groups[group])

    return [test_id for group in sorted(groups, key=rank) for test_id in groups[group]]
