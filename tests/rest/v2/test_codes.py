"""Every code that API v2 documents for an endpoint is provoked at that endpoint, and none is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from barnabas.rest.formats.errors import SchemaNotFound, SchemaRefused
from barnabas.rest.formats.source import NoRegistry
from barnabas.rest.v2 import description
from rest.running import running
from rest.v2.calling import V2, Api, embedded, refusal
from rest.v2.test_consumers import place

INSTANCE = "/consumers/{group}/instances/{instance}"
TOPIC, PARTITION = "/topics/{topic}", "/topics/{topic}/partitions/{partition}"
PRODUCE = {(404, 40403), (422, 42201), (422, 42202), (400, 400), (422, 42205), (422, 422), (408, 40801)}
PRODUCE |= {(422, 42207), (500, 50002), (500, 50003)}
NO_INSTANCE = (404, 40403)

# The codes of Confluent's REST proxy, by endpoint.
DOCUMENTED: dict[tuple[str, str], set[tuple[int, int]]] = {
    ("GET", "/topics"): set(),
    ("GET", "/brokers"): set(),
    ("GET", TOPIC): {(404, 40403)},
    ("POST", TOPIC): PRODUCE,
    ("GET", f"{TOPIC}/partitions"): {(404, 40403)},
    ("GET", PARTITION): {(404, 40403), (404, 40402)},
    ("GET", f"{PARTITION}/offsets"): {(404, 40403), (404, 40402)},
    ("POST", PARTITION): PRODUCE | {(404, 40402)},
    ("POST", "/consumers/{group}"): {(409, 40902), (422, 42204), (400, 400)},
    ("DELETE", INSTANCE): {NO_INSTANCE},
    ("POST", f"{INSTANCE}/subscription"): {NO_INSTANCE, (409, 40903)},
    ("GET", f"{INSTANCE}/subscription"): {NO_INSTANCE},
    ("DELETE", f"{INSTANCE}/subscription"): {NO_INSTANCE},
    ("GET", f"{INSTANCE}/records"): {NO_INSTANCE, (406, 40601)},
    ("POST", f"{INSTANCE}/offsets"): {NO_INSTANCE},
    ("GET", f"{INSTANCE}/offsets"): {NO_INSTANCE, (404, 40402)},
    ("POST", f"{INSTANCE}/positions"): {NO_INSTANCE, (409, 40903)},
    ("POST", f"{INSTANCE}/positions/beginning"): {NO_INSTANCE, (409, 40903)},
    ("POST", f"{INSTANCE}/positions/end"): {NO_INSTANCE, (409, 40903)},
    ("POST", f"{INSTANCE}/assignments"): {NO_INSTANCE, (409, 40903)},
    ("GET", f"{INSTANCE}/assignments"): {NO_INSTANCE},
}


class Case(NamedTuple):
    status: int
    code: int
    body: Any = None
    content: str = V2
    accept: str = V2
    topic: str = "there"
    partition: str = "0"
    instance: str = "subscribed"


NOBODY = {"instance": "nobody"}
WHERE = {"partitions": [place("there", 0)]}
AVRO, JSON = embedded("avro"), embedded("json")


def records(*each: Any, **others: Any) -> dict[str, Any]:
    return {"records": list(each), **others}


PRODUCED = [
    Case(404, 40403, records({"value": 1}), JSON, topic="not a name"),
    Case(422, 42201, records({"key": 1}), AVRO),
    Case(422, 42202, records({"value": 1}), AVRO),
    Case(400, 400, records({"value": "!"}), embedded("binary")),
    Case(422, 42205, records({"value": 1}, value_schema="{"), AVRO),
    Case(422, 422, records(), JSON),
    Case(422, 42207, records({"value": 1}, value_schema_id=77), AVRO),
    Case(408, 40801, records({"value": 1}, value_schema='"int"'), AVRO),
    Case(500, 50002, records({"value": "x" * 2_000_000}), JSON),  # of a single record, inside a 200
    Case(
        500, 50003, records({"value": 1}), JSON
    ),  # as above; the proxy of this case gives the brokers no time
]
CASES: dict[tuple[str, str], list[Case]] = {
    ("GET", "/topics"): [],
    ("GET", "/brokers"): [],
    ("GET", TOPIC): [Case(404, 40403, topic="nobody")],
    ("POST", TOPIC): PRODUCED,
    ("GET", f"{TOPIC}/partitions"): [Case(404, 40403, topic="nobody")],
    ("GET", PARTITION): [Case(404, 40403, topic="nobody"), Case(404, 40402, partition="9")],
    ("GET", f"{PARTITION}/offsets"): [Case(404, 40403, topic="nobody"), Case(404, 40402, partition="9")],
    ("POST", PARTITION): [*PRODUCED, Case(404, 40402, records({"value": 1}), JSON, partition="9")],
    ("POST", "/consumers/{group}"): [
        Case(409, 40902, {"name": "subscribed"}),
        Case(422, 42204, {"auto.offset.reset": "x"}),
        Case(400, 400, {"format": "x"}),
    ],
    ("DELETE", INSTANCE): [Case(*NO_INSTANCE, **NOBODY)],
    ("POST", f"{INSTANCE}/subscription"): [
        Case(*NO_INSTANCE, {"topics": []}, **NOBODY),
        Case(409, 40903, {"topics": ["there"]}, instance="assigned"),
    ],
    ("GET", f"{INSTANCE}/subscription"): [Case(*NO_INSTANCE, **NOBODY)],
    ("DELETE", f"{INSTANCE}/subscription"): [Case(*NO_INSTANCE, **NOBODY)],
    ("GET", f"{INSTANCE}/records"): [Case(*NO_INSTANCE, **NOBODY), Case(406, 40601, accept=JSON)],
    ("POST", f"{INSTANCE}/offsets"): [Case(*NO_INSTANCE, **NOBODY)],
    ("GET", f"{INSTANCE}/offsets"): [Case(*NO_INSTANCE, WHERE, **NOBODY), Case(404, 40402)],
    ("POST", f"{INSTANCE}/positions"): [
        Case(*NO_INSTANCE, {"offsets": []}, **NOBODY),
        Case(409, 40903, {"offsets": [place("there", 0, offset=1)]}),
    ],
    ("POST", f"{INSTANCE}/positions/beginning"): [
        Case(*NO_INSTANCE, WHERE, **NOBODY),
        Case(409, 40903, WHERE),
    ],
    ("POST", f"{INSTANCE}/positions/end"): [Case(*NO_INSTANCE, WHERE, **NOBODY), Case(409, 40903, WHERE)],
    ("POST", f"{INSTANCE}/assignments"): [Case(*NO_INSTANCE, WHERE, **NOBODY), Case(409, 40903, WHERE)],
    ("GET", f"{INSTANCE}/assignments"): [Case(*NO_INSTANCE, **NOBODY)],
}
ALL = [
    pytest.param(method, path, case, id=f"{method} {path} {case.code}")
    for (method, path), cases in CASES.items()
    for case in cases
]


@pytest.fixture(scope="module")
def api(broker: str) -> Iterator[Api]:
    """A proxy without a registry, with a topic of one partition and two instances."""
    with running({"bootstrap.servers": broker, "schema.registry.url": ""}) as url:
        api = Api(url)
        (cluster,) = api.get("/v3/clusters", accept="application/json").json()["data"]
        body = {"topic_name": "there", "partitions_count": 1, "replication_factor": 1}
        path = f"/v3/clusters/{cluster['cluster_id']}/topics"
        response = api.post(path, body, content="application/json", accept="application/json")
        assert response.status_code == 201, response.text
        for name in ("subscribed", "assigned"):
            assert api.post("/consumers/g", {"name": name}).status_code == 200
        api.post("/consumers/g/instances/subscribed/subscription", {"topics": ["there"]})
        api.post("/consumers/g/instances/assigned/assignments", WHERE)
        yield api


@pytest.fixture(scope="module")
def hasty(broker: str, api: Api) -> Iterator[Api]:
    """A proxy that gives up before a broker can answer."""
    given = {"producer.request.timeout.ms": "0", "producer.delivery.timeout.ms": "1"}
    with running({"bootstrap.servers": broker, "schema.registry.url": "", **given}) as url:
        yield Api(url)


def test_every_documented_code_is_declared_and_provoked() -> None:
    provoked = {endpoint: {case[:2] for case in cases} for endpoint, cases in CASES.items()}
    assert provoked == DOCUMENTED
    declared: dict[tuple[str, str], set[tuple[int, int]]] = {
        (each.method, each.path): {(error.status, error.code) for error in each.errors}
        for part in description.PARTS
        for each in part.declared
    }
    missing = {endpoint: codes - declared.get(endpoint, set()) for endpoint, codes in DOCUMENTED.items()}
    assert not any(missing.values()), missing


@pytest.mark.parametrize(("method", "path", "case"), ALL)
def test_a_code(
    api: Api, hasty: Api, method: str, path: str, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = {"topic": case.topic, "partition": case.partition, "group": "g", "instance": case.instance}
    let_registry_answer(monkeypatch, case)
    used = hasty if case.code == 50003 else api
    response = used.call(method, path.format(**parts), case.body, content=case.content, accept=case.accept)
    if case.code in (50002, 50003):
        assert response.status_code == 200
        (found,) = response.json()["offsets"]
        assert (found["partition"], found["offset"], found["error_code"]) == (None, None, case.code)
        return
    assert refusal(response) == (case.status, case.code), response.text


def let_registry_answer(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    """For the codes that come from answers of a registry; else there is none."""
    failures: dict[int, Callable[[], Exception]] = {
        42205: lambda: SchemaRefused("Invalid schema"),
        42207: lambda: SchemaNotFound("Schema 77 not found"),
    }
    if case.code in failures:

        async def fail(*_: Any) -> Any:
            raise failures[case.code]()

        monkeypatch.setattr(NoRegistry, "register", fail)
        monkeypatch.setattr(NoRegistry, "by_id", fail)
