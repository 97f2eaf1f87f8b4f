"""A worker with the HTTP sink or source that is killed again and again, and a server that goes away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.connect.connectors.killed_sink import changes, last_of_each, run_with_kills
from tests.connect.connectors.killed_source import assert_in_order, read
from tests.connect.connectors.worker import running_worker, until
from tests.stores.http_server import HttpServer, Reply, Seen

from barnabas.testing.broker import Broker

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def test_killed_workers_leave_the_last_value_of_each_key(
    barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    """Each record arrives at least once, in the order of its key: resources by key end as the topic does."""
    rows = changes("http", 2000, 60)
    things: dict[str, Any] = {}
    taken: list[int] = []

    def decide(seen: Seen) -> Reply:
        key = seen.path.rpartition("/")[2]
        if seen.method == "DELETE":
            things.pop(key, None)
        else:
            things[key] = json.loads(seen.body)
            taken.append(things[key]["id"])
        return Reply(200)

    with HttpServer(decide) as server:
        connector = {
            "name": "http",
            "connector.class": "io.confluent.connect.http.HttpSinkConnector",
            "topics": barnabas_topic,
            "http.api.url": server.url + "/things/${key}",
            "request.method": "PUT",
            "behavior.on.null.values": "delete",
            "max.retries": "-1",
            "retry.backoff.ms": "100",
        }
        run_with_kills(
            tmp_path,
            barnabas_broker.bootstrap,
            connector,
            rows,
            lambda: max(taken, default=-1),
            server,
        )
    assert things == last_of_each(rows)
    assert set(taken) == {value["id"] for _, value in rows if value is not None}


def test_killed_workers_read_each_page_once(
    barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    """A source in a worker that is killed five times: no record is missing, and those that come twice come in
    order again."""
    count, page = 1000, 7

    def seen() -> list[int]:
        return read(barnabas_broker.bootstrap, barnabas_topic, lambda value: int(json.loads(value)["id"]))

    def decide(asked: Seen) -> Reply:
        start = int(asked.query["start"])
        return Reply(200, [{"id": number} for number in range(start, min(start + page, count))])

    with HttpServer(decide) as server:
        connector = {
            "name": "pages",
            "connector.class": "io.confluent.connect.http.HttpSourceConnector",
            "url": server.url,
            "topic": barnabas_topic,
            "http.request.parameters": "start=${offset}",
            "request.interval.ms": "100",
        }
        for kill in range(5):
            least = kill * page * 5
            with running_worker(tmp_path, barnabas_broker.bootstrap, connector) as worker:
                until(lambda least=least: server.seen and int(server.seen[-1].query["start"]) > least, 90.0)
                worker.kill()
        with running_worker(tmp_path, barnabas_broker.bootstrap, connector):
            until(lambda: int(server.seen[-1].query["start"]) == count, 90.0)
            until(lambda: set(range(count)) <= set(seen()), 90.0)
        assert_in_order(seen())
