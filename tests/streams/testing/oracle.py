"""Random records through Java's TopologyTestDriver and through ours: inputs, both runs, recordings.

A step is ("record", topic, key, value, time) or ("advance", ms); its results are (key, value, time).
"""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

from tests.streams.testing.topologies import TOPOLOGIES, plan_of

from barnabas.spark.jars import cache_folder
from barnabas.streams import TestDriver
from barnabas.testing import maven

ARTIFACTS = ["org.apache.kafka:kafka-streams-test-utils:4.3.1", "org.slf4j:slf4j-nop:2.0.17"]
JARS = "streams-test-4.3.1"
NULL = "\\N"
PROGRAM = Path(__file__).parent / "java" / "Oracle.java"
RECORDED = Path(__file__).parent / "recorded.json"
TIMEOUT_S = 300
Step = list[Any]
Result = list[Any]


def missing() -> str | None:
    return maven.missing(JARS, ARTIFACTS)


def steps(name: str, seed: int, count: int) -> list[Step]:
    """Records out of order, with null keys and null values where the topology takes them."""
    rng = random.Random(f"{name} {seed}")
    topics = {
        "table_three": ["one", "two", "three"],
    }.get(name, ["one", "two"] if takes_two(name) else ["one"])
    now, found = 0, []
    for number in range(count):
        if name == "process" and rng.random() < 0.1:
            found.append(["advance", rng.randint(1, 60)])
            continue
        now += rng.choice((0, 0, 1, 2, 3, 5, 12))
        time = max(0, now - rng.choice((0, 0, 0, 1, 2, 4, 8, 16, 30)))
        topic = rng.choice(topics)
        keys = ["a", "b", "c"] if rng.random() < 0.95 or not takes_null_key(name, topic) else [None]
        value = f"{rng.choice('abcd')}{number}"
        is_null = rng.random() < (
            0.2 if name.startswith(("table", "foreign", "to_table", "versioned")) else 0.05
        )
        found.append(
            [
                "record",
                topic,
                rng.choice(keys),
                None if is_null and takes_null_value(name, topic) else value,
                time,
            ]
        )
    return found


def takes_two(name: str) -> bool:
    prefixes = ("stream_", "global", "table_inner", "table_left", "table_outer", "foreign", "cogroup")
    more = ("versioned_join", "versioned_grace", "values_flat")
    return name.startswith((*prefixes, *more)) and name != "stream_self"


def takes_null_key(name: str, topic: str) -> bool:
    # Kafka Streams cannot keep a record without a key in the buffer of a join with a grace.
    return not ((name.startswith("global") and topic == "two") or name.startswith("versioned_grace"))


def takes_null_value(name: str, topic: str) -> bool:
    return True


def run_java(cases: dict[str, list[Step]], folder: Path) -> dict[str, dict[str, Any]]:
    """Results of each step, and the topology's description, by name."""
    lines = []
    for name, some in cases.items():
        lines.append(f"topology\t{name}")
        lines += ["\t".join(NULL if each is None else str(each) for each in step) for step in some]
    given = folder / "steps"
    given.write_text("\n".join(lines) + "\n")
    jars = f"{cache_folder(JARS)}/*"
    ran = subprocess.run(
        ["java", "-cp", jars, str(PROGRAM), str(given), str(folder / "state")],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    if ran.returncode != 0:
        raise RuntimeError(f"the Java program failed: {ran.stderr[-2000:]}")
    found: dict[str, dict[str, Any]] = {}
    for line in ran.stdout.splitlines():
        word, *rest = line.split("\t")
        if word == "topology":
            current = found[rest[0]] = {"results": [], "text": []}
        elif word == "text":
            current["text"].append(rest[0] if rest else "")
        elif word == "after":
            current["results"].append([])
        else:
            key, value, time = (None if each == NULL else each for each in rest)
            current["results"][-1].append([key, value, int(time or 0)])
    return found


def run_ours(name: str, some: list[Step]) -> list[list[Result]]:
    found = []
    with TestDriver(plan_of(name)) as driver:
        output = driver.output("out", value=str)
        for step in some:
            if step[0] == "advance":
                driver.advance(step[1])
            else:
                driver.input(step[1], value=str).pipe(*step[2:])
            found.append([[each.key, each.value, each.timestamp] for each in output.read()])
    return found


def record(folder: Path, seed: int, count: int) -> None:
    """Write what Java gives for one seed, for tests that run without Java."""
    cases = {name: steps(name, seed, count) for name in TOPOLOGIES}
    java = run_java(cases, folder)
    kept = {name: {"steps": cases[name], **java[name]} for name in TOPOLOGIES}
    RECORDED.write_text(json.dumps(kept, separators=(",", ":")).replace('},"', '},\n"') + "\n")
