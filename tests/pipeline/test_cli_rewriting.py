"""backfill, replay, release and destroy as a person types them: what they cover is written anew, what depends
on it follows in order, and no other table gets a new version."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.cli.main import main
from barnabas.engine.delta.log import table_version
from barnabas.engine.timeline import Timeline
from barnabas.pipeline.file.reading import read_pipeline
from barnabas.pipeline.observe.report_facts import tables
from barnabas.pipeline.serving.access import open_queries

from .lakes import rows_of

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]  # Spark takes its time on a busy machine

FILE = """
name: again
lake: ./lake
sources:
  orders: {{topic: {{bootstrap.servers: "{bootstrap}", subscribe: {orders}}}, format: json,
    schema: "id STRING, shop STRING, amount BIGINT", frequency: real_time}}
  visits: {{topic: {{bootstrap.servers: "{bootstrap}", subscribe: {visits}}}, format: json,
    schema: "id STRING, shop STRING, amount BIGINT", frequency: {{batch: "0 2 * * *"}}}}
staging:
  orders: {{source: orders, key: [id]}}
  visits: {{source: visits, key: [id]}}
trusted:
  orders: {{from: orders, rules: [{{range: {{amount: [0, 100]}}}}]}}
  visits: {{from: visits, rules: [{{range: {{amount: [0, 100]}}}}]}}
refined:
  totals: {{sql: "SELECT shop, sum(amount) AS amount FROM large GROUP BY shop", schedule: "0 2 * * *"}}
  large: {{sql: "SELECT shop, amount FROM orders WHERE amount >= 10"}}
  seen: {{sql: "SELECT shop, amount FROM visits"}}
views:
  by_total: {{from: refined.totals, sql: "SELECT shop, sum(amount) AS amount FROM totals GROUP BY shop",
    keys: [shop], measures: {{amount: sum}}}}
  by_shop: {{from: trusted.orders, sql: "SELECT shop, count(*) AS n FROM orders GROUP BY shop",
    keys: [shop], measures: {{n: count}}}}
  by_visit: {{from: trusted.visits, sql: "SELECT shop, count(*) AS n FROM visits GROUP BY shop",
    keys: [shop], measures: {{n: count}}}}
"""


class World:
    """A file, two topics, and the commands in this process, on the session that all tests share."""

    def __init__(self, folder: Path, bootstrap: str, topics: dict[str, str]) -> None:
        self.folder = folder
        self.file, self.lake = folder / "pipeline.yaml", folder / "lake"
        self._producer = Producer({"bootstrap.servers": bootstrap})
        self._topics = topics
        self.file.write_text(FILE.format(bootstrap=bootstrap, **topics))

    def produce(self, topic: str, hour: int, *amounts: int) -> None:
        """Records of an hour of a day, named by hour and place."""
        at = datetime(2026, 1, 1, hour, tzinfo=UTC)
        for place, amount in enumerate(amounts):
            event = {"id": f"{hour}-{place}", "shop": "ab"[place % 2], "amount": amount}
            moment = int(at.timestamp() * 1000) + place
            self._producer.produce(self._topics[topic], json.dumps(event).encode(), timestamp=moment)
        assert self._producer.flush(30) == 0

    def versions(self) -> dict[str, int]:
        found = tables(read_pipeline(self.file))
        return {str(each): table_version(self.lake / each.zone / each.name) for each in found}

    def view(self, name: str) -> dict[str, int]:
        with open_queries(read_pipeline(self.file)) as serving:
            rows = serving.query(name)["rows"]
        return {row["shop"]: row["amount" if name == "by_total" else "n"] for row in rows}

    def trusted(self, name: str) -> list[str]:
        return sorted(row["id"] for row in rows_of(self.lake, "trusted", name, ["id"]))

    def views_done(self, since: float) -> list[str]:
        entries = Timeline(self.lake / "_barnabas").entries(since=since)
        return [each.name for each in entries if each.kind.startswith("view")]


@pytest.fixture
def world(
    tmp_path: Path,
    spark: Any,
    broker: Any,
    topic: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    monkeypatch.setattr("barnabas.pipeline.run.session.open_session", lambda *_, **__: spark)
    monkeypatch.setattr("barnabas.engine.session.close", lambda _: None)
    topics = {name: topic(name, partitions=1) for name in ("orders", "visits")}
    yield World(tmp_path, broker.bootstrap, topics)


def test_commands_rewrite_what_they_cover_and_update_what_depends_on_it(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(*arguments: str) -> tuple[str, set[str], list[str]]:
        """The output of a command, the tables with a new version, and the computed views."""
        before, began = world.versions(), time.time()
        assert main(["pipeline", *arguments, "-f", str(world.file)], "barnabas") == 0
        after = world.versions()
        changed = {name for name, version in after.items() if version != before[name]}
        return capsys.readouterr().out, changed, world.views_done(began)

    world.produce("orders", 1, 5, 20, 300)
    world.produce("orders", 2, 30, 40)
    world.produce("visits", 1, 1, 2, 500)
    command("run", "--once")
    world.produce("orders", 3, 50)
    command("run", "--once")
    assert world.trusted("orders") == ["1-0", "1-1", "2-0", "2-1", "3-0"]
    assert world.view("by_shop") == {"a": 3, "b": 2}

    # The rule is another one: what was refused is released, that of orders alone.
    world.file.write_text(
        world.file.read_text().replace(
            "orders, rules: [{range: {amount: [0, 100]", "orders, rules: [{range: {amount: [0, 400]"
        )
    )
    said, changed, views = command("release", "orders", "--rule", "range_amount")
    assert changed == {"trusted.orders", "quarantine.orders", "refined.large", "refined.totals"}
    assert views == ["by_total", "by_shop"]
    assert said.splitlines() == [
        "release orders: 1 rows in, 1 accepted, 0 quarantined",
        "  refined large recomputed",
        "  refined totals recomputed",
        "  view by_total refreshed",
        "  view by_shop refreshed",
    ]
    assert world.view("by_total") == {"a": 380, "b": 60}

    # A backfill of the first hour with a rule that is strict: rows of the other hours stay as they are.
    world.file.write_text(world.file.read_text().replace("[0, 400]", "[10, 400]"))
    rows = {
        row["id"]: row for row in rows_of(world.lake, "trusted", "orders", ["id", "_ingested_at", "_batch"])
    }
    said, changed, views = command(
        "backfill", "orders", "--from", "2026-01-01T01:00", "--to", "2026-01-01T02:00"
    )
    assert said.startswith("raw holds 3 rows of orders here: batches 1 to 1, ingested since ")
    assert said.splitlines()[1] == "backfill orders: 3 rows in, 2 accepted, 1 quarantined"
    assert changed == {
        "staging.orders",
        "trusted.orders",
        "quarantine.orders",
        "refined.large",
        "refined.totals",
    }
    assert views == ["by_total", "by_shop"]
    assert world.trusted("orders") == ["1-1", "1-2", "2-0", "2-1", "3-0"]
    again = {
        row["id"]: row for row in rows_of(world.lake, "trusted", "orders", ["id", "_ingested_at", "_batch"])
    }
    assert {key: again[key] for key in ("2-0", "2-1", "3-0")} == {
        key: rows[key] for key in ("2-0", "2-1", "3-0")
    }
    assert world.view("by_shop") == {"a": 3, "b": 2}

    # A replay of the other source touches nothing of orders; one of a batch that is not there, nothing.
    said, changed, views = command("replay", "visits", "--from-batch", "1", "--to-batch", "1")
    assert changed == {"staging.visits", "trusted.visits", "quarantine.visits", "refined.seen"}
    assert views == ["by_visit"]
    assert world.view("by_visit") == {"a": 1, "b": 1}
    assert len(rows_of(world.lake, "quarantine", "visits", ["offset"])) == 1
    said, changed, views = command("replay", "visits", "--from-batch", "7")
    assert (changed, views) == (set(), [])

    # Tables that batches are appended to: another SQL, and one that is new, are made of all that is there.
    text = world.file.read_text().replace("amount >= 10", "amount >= 40")
    world.file.write_text(
        text.replace("refined:", "refined:\n  small: {sql: SELECT id FROM orders WHERE amount < 40}")
    )
    world.produce("orders", 4, 35, 60)
    said, changed, views = command("run", "--once")
    assert not changed & {"staging.visits", "trusted.visits", "refined.seen"}
    found = sorted(row["id"] for row in rows_of(world.lake, "refined", "small", ["id"]))
    assert found == ["1-1", "2-0", "4-0"]
    found = sorted(row["amount"] for row in rows_of(world.lake, "refined", "large", ["amount"]))
    assert found == [40, 50, 60, 300]

    # The lake goes, and nothing beside it.
    (world.folder / "precious").touch()
    assert main(["pipeline", "destroy", "--yes", "-f", str(world.file)], "barnabas") == 0
    assert sorted(path.name for path in world.folder.iterdir()) == ["pipeline.yaml", "precious"]
