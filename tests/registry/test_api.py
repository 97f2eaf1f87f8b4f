"""The API of the registry: transcripts of requests and responses, media types, failures of the store."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.protobuf import descriptor_pb2
from starlette.responses import Response

from barnabas.registry.api.application import PARTS, routes
from barnabas.registry.api.registry import ApiSettings
from barnabas.registry.state.association_records import Association, AssociationKey
from barnabas.registry.state.deciding import Rules
from barnabas.services.errors import ApiError
from barnabas.services.routing import RouteTable
from registry.api_table import CODES, ENDPOINTS, NEVER_SENT, SENT_IN_TESTS
from registry.instant import InstantRegistry
from registry.transcript import run

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))
V1 = "application/vnd.schemaregistry.v1+json"
SCHEMA = {"schema": '{"a":1}'}


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    asyncio.run(run(path, InstantRegistry()))


def test_every_endpoint_and_every_code_is_in_a_transcript() -> None:
    declared = {f"{each.method} {each.path}" for part in PARTS for each in part.declared}
    assert {each for each in declared if "/contexts/{context}/" not in each} == {*ENDPOINTS}
    table = RouteTable(routes(InstantRegistry().api))
    used, codes = set(), set()
    for path in TRANSCRIPTS:
        text = path.read_text()
        codes |= {int(each) for each in re.findall(r'"error_code":(\d+)', text)}
        for method, target in re.findall(r"^(GET|POST|PUT|DELETE) (\S+)", text, re.MULTILINE):
            try:
                used.add(f"{method} {table.find(method, target.partition('?')[0].encode())[0].path}")
            except ApiError:
                continue  # paths that are wrong on purpose
    assert {*ENDPOINTS} - used == set()
    assert CODES - NEVER_SENT - codes == SENT_IN_TESTS


def asked(
    work: Callable[[httpx.AsyncClient], Awaitable[None]], registry: InstantRegistry | None = None
) -> None:
    """Run requests against a registry."""

    async def main() -> None:
        async with (registry or InstantRegistry()).client() as client:
            await work(client)

    asyncio.run(main())


def test_media_types_are_negotiated() -> None:
    async def work(client: httpx.AsyncClient) -> None:
        async def media_type(accept: str) -> str:
            return str((await client.get("/subjects", headers={"accept": accept})).headers["content-type"])

        assert await media_type("*/*") == V1
        assert await media_type("application/*") == V1
        assert await media_type("application/json") == "application/json"
        assert await media_type(f"{V1};q=0.3, application/json; q=0.9") == "application/json"
        refused = await client.get("/subjects", headers={"accept": "text/html"})
        assert (refused.status_code, refused.json()["error_code"]) == (406, 406)
        for kind in (
            V1,
            "application/vnd.schemaregistry+json",
            "application/json; charset=utf-8",
            "application/octet-stream",
        ):
            response = await client.post(
                "/subjects/s/versions", content=json.dumps(SCHEMA), headers={"content-type": kind}
            )
            assert response.json()["id"] == 1
        refused = await client.post(
            "/subjects/s/versions", content="{}", headers={"content-type": "text/xml"}
        )
        assert (refused.status_code, refused.json()["error_code"]) == (415, 415)
        assert (await client.post("/subjects/s/versions", content=json.dumps(SCHEMA))).status_code == 200

    asked(work)


def test_classic_answers_have_only_the_fields_that_old_clients_know() -> None:
    async def work(client: httpx.AsyncClient) -> None:
        assert (await client.post("/subjects/s/versions", json=SCHEMA)).json() == {"id": 1}
        assert (
            await client.post(
                "/subjects/s/versions", json={**SCHEMA, "schemaType": "JSON"}, params={"force": "true"}
            )
        ).json() == {"id": 2}
        assert (await client.get("/schemas/ids/1")).json() == SCHEMA
        assert (await client.get("/schemas/ids/2")).json() == {**SCHEMA, "schemaType": "JSON"}
        whole = {"subject": "s", "version": 1, "id": 1, **SCHEMA}
        assert (await client.get("/subjects/s/versions/1")).json() == whole
        assert (await client.post("/subjects/s", json=SCHEMA)).json() == whole
        assert (await client.get("/schemas?limit=1")).json() == [whole]
        refused = await client.post("/subjects/s/versions", json={"schema": '{"z":null}'})
        assert (refused.status_code, refused.json()["error_code"]) == (409, 409)

    asked(work, InstantRegistry(settings=ApiSettings(is_classic=True)))


def test_limits_of_the_server_bound_what_is_asked_for() -> None:
    async def work(client: httpx.AsyncClient) -> None:
        for number in range(5):
            await client.post(f"/subjects/s{number}/versions", json=SCHEMA)
        assert len((await client.get("/schemas")).json()) == 2
        assert len((await client.get("/schemas?limit=99")).json()) == 3
        assert len((await client.get("/subjects?limit=99")).json()) == 4
        large = {"schema": json.dumps({"a": "x" * 1000})}
        refused = await client.post("/subjects/s/versions", json=large)
        assert (refused.status_code, refused.json()["error_code"]) == (422, 42209)

    asked(
        work,
        InstantRegistry(
            settings=ApiSettings(schema_limit=(2, 3), subject_limit=(4, 4), schema_bytes_max=1000)
        ),
    )


@pytest.mark.parametrize("code", [50001, 50002, 50003, 50004])
def test_failures_of_the_store_are_answered_and_change_nothing(code: int) -> None:
    registry = InstantRegistry()
    registry.changes.failure = ApiError(500, code, "as told")

    async def work(client: httpx.AsyncClient) -> None:
        for method, path, body in (
            ("POST", "/subjects/s/versions", SCHEMA),
            ("PUT", "/config", {"compatibility": "NONE"}),
            ("PUT", "/mode", {"mode": "READONLY"}),
            ("DELETE", "/config", None),
        ):
            response = await client.request(method, path, json=body)
            assert (response.status_code, response.json()) == (
                500,
                {"error_code": code, "message": "as told"},
            )
        assert (await client.get("/subjects")).json() == []

    asked(work, registry)


def test_an_unexpected_failure_says_nothing_about_its_inside(caplog: pytest.LogCaptureFixture) -> None:
    def parse(*arguments: Any, **named: Any) -> Any:
        raise RuntimeError("a secret")

    async def work(client: httpx.AsyncClient) -> None:
        response = await client.post("/subjects/s/versions", json=SCHEMA)
        assert (response.status_code, response.json()["error_code"]) == (500, 500)
        assert "secret" not in response.text

    asked(work, InstantRegistry(parse))


def test_a_node_that_is_not_the_primary_passes_the_response_on() -> None:
    registry = InstantRegistry()

    async def work(client: httpx.AsyncClient) -> None:
        assert (await client.post("/subjects/s/versions", json=SCHEMA)).json()["id"] == 1
        registry.changes.response = Response(b'{"id":77}', 201, media_type=V1)
        requests: list[tuple[str, str, Any]] = [
            ("POST", "/subjects/s/versions", {"schema": '{"b":1}'}),
            ("POST", "/subjects/s/versions/1/tags", {}),
            ("DELETE", "/subjects/s", None),
            ("DELETE", "/subjects/s/versions/1", None),
            ("PUT", "/config", {}),
            ("DELETE", "/config/s", None),
            ("PUT", "/mode/s", {"mode": "IMPORT"}),
            ("DELETE", "/mode", None),
            ("DELETE", "/contexts/.x", None),
            ("POST", "/associations", {}),
            ("DELETE", "/associations/resources/r", None),
            ("POST", "/associations:batch", {}),
        ]
        for method, path, body in requests:
            response = await client.request(method, path, json=body)
            assert (response.status_code, response.content) == (201, b'{"id":77}'), path
        # A schema that is there is answered by any node.
        assert (await client.post("/subjects/s/versions", json=SCHEMA)).json()["id"] == 1

    asked(work, registry)


def test_modes_cannot_be_changed_where_the_setting_says_so() -> None:
    async def work(client: httpx.AsyncClient) -> None:
        response = await client.put("/mode", json={"mode": "READONLY"})
        assert (response.status_code, response.json()["error_code"]) == (422, 42205)

    asked(work, InstantRegistry(rules=Rules(mode_is_mutable=False)))


def test_a_subject_has_a_bounded_number_of_associations() -> None:
    registry = InstantRegistry()
    for number in range(1000):
        key = AssociationKey(f"r{number}", "ns", "topic", "value", "s")
        record = Association(key, "", f"id-{number}", "WEAK", False, 1, 1).record()
        registry.state.apply(record.key, record.value)

    async def work(client: httpx.AsyncClient) -> None:
        await client.post("/subjects/s/versions", json=SCHEMA)
        body = {
            "resourceName": "n",
            "resourceNamespace": "ns",
            "resourceId": "i",
            "associations": [{"subject": "s"}],
        }
        response = await client.post("/associations", json=body)
        assert (response.status_code, response.json()["error_code"]) == (409, 40902)

    asked(work, registry)


def test_answers_by_id_change_with_the_version() -> None:
    async def work(client: httpx.AsyncClient) -> None:
        await client.post("/subjects/s/versions", json=SCHEMA)
        assert [(await client.get("/schemas/ids/1")).json()["deleted"] for _ in range(2)] == [False, False]
        await client.delete("/subjects/s")
        assert (await client.get("/schemas/ids/1")).json()["deleted"] is True
        await client.delete("/subjects/s?permanent=true")
        assert (await client.get("/schemas/ids/1")).status_code == 404

    asked(work)


def test_the_description_lists_every_endpoint() -> None:
    async def work(client: httpx.AsyncClient) -> None:
        described = (await client.get("/openapi.json")).json()
        found = {
            f"{method.upper()} {path}" for path, methods in described["paths"].items() for method in methods
        }
        assert {*ENDPOINTS} <= found
        assert "GET /contexts/{context}/subjects/{subject}/versions" in found
        names = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(described)))
        assert names - described["components"]["schemas"].keys() == set()
        page = await client.get("/docs")
        assert page.headers["content-type"].startswith("text/html")

    asked(work)


def test_forms_of_real_schemas() -> None:
    point = {"type": "record", "name": "Point", "namespace": "n", "fields": [{"name": "x", "type": "int"}]}
    line = {"type": "record", "name": "Line", "namespace": "n", "fields": [{"name": "to", "type": "Point"}]}
    reference = {"name": "n.Point", "subject": "point", "version": -1}

    async def work(client: httpx.AsyncClient) -> None:
        await client.post("/subjects/point/versions", json={"schema": json.dumps(point)})
        body = {"schema": json.dumps(line), "references": [reference]}
        assert (await client.post("/subjects/line/versions", json=body)).json()["id"] == 2
        plain = (await client.get("/schemas/ids/2/schema")).json()
        assert plain["fields"][0]["type"] == "Point"
        for path in ("/schemas/ids/2", "/subjects/line/versions/1"):
            inlined = json.loads((await client.get(f"{path}?format=resolved")).json()["schema"])
            assert inlined["fields"][0]["type"]["fields"] == point["fields"]
            unheard = (await client.get(f"{path}?format=unheard")).json()["schema"]
            assert json.loads(unheard) == plain
        inlined_text = (await client.get("/subjects/line/versions/1/schema?format=resolved")).text
        assert (await client.post("/subjects/line", json={"schema": inlined_text})).json()["version"] == 1
        proto = {"schema": 'syntax = "proto3"; message M { int32 a = 1; }', "schemaType": "PROTOBUF"}
        made = (await client.post("/subjects/p/versions?format=serialized", json=proto)).json()
        parsed = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(made["schema"]))
        assert parsed.message_type[0].field[0].name == "a"

    asked(work, InstantRegistry(parse=None))


def test_tags_are_added_found_and_removed() -> None:
    record = {"type": "record", "name": "A", "namespace": "n", "fields": [{"name": "x", "type": "string"}]}
    field = {"schemaEntity": {"entityPath": "n.A.x", "entityType": "sr_field"}, "tags": ["PII", "NEW"]}
    whole = {"schemaEntity": {"entityPath": "n.A", "entityType": "sr_record"}, "tags": ["T"]}

    async def work(client: httpx.AsyncClient) -> None:
        await client.post("/subjects/s/versions", json={"schema": json.dumps(record)})
        tagged = await client.post("/subjects/s/versions/1/tags", json={"tagsToAdd": [field, whole]})
        assert (tagged.status_code, tagged.json()["version"]) == (200, 2)
        assert json.loads(tagged.json()["schema"])["fields"][0]["confluent:tags"] == ["NEW", "PII"]
        latest = "/subjects/s/versions/latest"
        assert "schemaTags" not in (await client.get(latest)).json()
        found = (await client.get(f"{latest}?findTags=PII")).json()["schemaTags"]
        assert found == [{**field, "tags": ["PII"]}]
        found = (await client.get("/schemas/ids/2?findTags=*")).json()["schemaTags"]
        assert found == [whole, {**field, "tags": ["NEW", "PII"]}]
        body = {"schema": "", "schemaTagsToRemove": [{**field, "tags": ["NEW"]}, whole]}
        text = (await client.post("/subjects/s/versions", json=body)).json()["schema"]
        assert "NEW" not in text and "PII" in text and '"T"' not in text
        document = {
            "schema": json.dumps({"type": "object", "properties": {"a": {"type": "string"}}}),
            "schemaType": "JSON",
        }
        await client.post("/subjects/j/versions", json=document)
        entity = {"entityPath": "object.a", "entityType": "sr_field"}
        change = {"tagsToAdd": [{"schemaEntity": entity, "tags": ["PII"]}]}
        assert "confluent:tags" in (await client.post("/subjects/j/versions/1/tags", json=change)).text
        proto = {"schema": 'syntax = "proto3"; message M {}', "schemaType": "PROTOBUF"}
        await client.post("/subjects/p/versions", json=proto)
        assert (await client.post("/subjects/p/versions/1/tags", json=change)).json()["error_code"] == 42201
        assert (await client.get("/subjects/p/versions/1?findTags=*")).status_code == 200

    asked(work, InstantRegistry(parse=None))


def test_ids_are_unique_when_many_register_at_once() -> None:
    registry = InstantRegistry()

    async def work(client: httpx.AsyncClient) -> None:
        async def register(number: int) -> tuple[int, int]:
            body = {"schema": json.dumps({f"f{number % 60}": 1})}
            answer = await client.post(f"/subjects/s{number % 7}/versions", json=body)
            return number % 60, answer.json()["id"]

        async def read() -> None:
            for _ in range(50):
                assert (await client.get("/schemas?latestOnly=true")).status_code == 200

        *found, _ = await asyncio.gather(*map(register, range(240)), read())
        ids = dict(pair for pair in found if pair is not None)
        assert sorted(ids.values()) == list(range(1, 61))
        assert all(ids[number] == schema_id for number, schema_id in (pair for pair in found if pair))

    asked(work, registry)
