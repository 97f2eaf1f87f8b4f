"""Which tests one worker runs one after another, and which of these groups begin first.

In: ids of tests, as pytest writes them, and how long they took before, where that is known. Out: the name of
a test's group; an order of groups. A file is a group of its own unless a rule below says otherwise, so a new
file needs no entry here. Does not know: pytest, xdist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# Tests that share what takes long to start: one worker starts it, once. The longest prefix decides.
#
# A Java machine for Spark takes ten seconds of a processor to start and many more until its code is compiled,
# so all tests with a session go to two workers. A worker keeps its machine when folders have sessions of
# their own; its class path stays that of the first.
PIPELINES, QUERIES = "Spark: pipelines", "Spark: queries"
APACHE = "Apache Kafka"  # the node of all tests
TOGETHER = {
    "tests/cli/test_transcripts.py": APACHE,
    "tests/connect/jobs/": QUERIES,
    "tests/engine/test_isolated_cluster.py": QUERIES,
    "tests/engine/test_running_queries.py": QUERIES,
    "tests/interop/test_same_answers.py": APACHE,
    "tests/interop/test_streams_records.py": APACHE,
    "tests/pipeline/test_change_types.py": PIPELINES,
    "tests/pipeline/test_cli_rewriting.py": PIPELINES,
    "tests/pipeline/test_fencing.py": PIPELINES,
    "tests/pipeline/test_field_protection.py": PIPELINES,
    "tests/pipeline/test_judging.py": PIPELINES,
    "tests/pipeline/test_re": PIPELINES,  # refined, registry, rewriting; a report too
    "tests/pipeline/test_sources_": PIPELINES,
    "tests/pipeline/test_views_": PIPELINES,
    "tests/pipeline/test_zones_": PIPELINES,
    "tests/spark/test_audit": QUERIES,
    "tests/spark/test_batch": QUERIES,
    "tests/spark/test_counting": QUERIES,
    "tests/spark/test_formats_in_queries": QUERIES,
    "tests/spark/test_security": QUERIES,
    "tests/spark/test_sink": QUERIES,
    "tests/spark/test_stream": QUERIES,
    "tests/streams/spark/test_conductor.py": QUERIES,
}

# Tests that share nothing: a file of these is cut into tests, which any worker may run.
APART = ("tests/soak/",)

# Without the durations of an earlier run: what takes longest begins first, so that no worker ends alone.
BEGIN_FIRST = (
    *(
        PIPELINES,
        QUERIES,
        APACHE,
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
