"""The client of a registry: requests, caches, failover, retries, errors. Answers are scripted."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from barnabas.schemas import (
    AsyncSchemaRegistryClient,
    Reference,
    RegistryError,
    Schema,
    SchemaRegistryClient,
)

Handler = Callable[[httpx.Request], httpx.Response]
STRING = Schema('"string"')


class Script:
    """Answers requests by a function and remembers them."""

    def __init__(self, answer: Handler) -> None:
        self.seen: list[httpx.Request] = []
        self._answer = answer

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        return self._answer(request)


def client(script: Script, **conf: Any) -> SchemaRegistryClient:
    given = {
        "url": "http://one",
        "retries.wait.ms": 0,
        **{key.replace("_", "."): v for key, v in conf.items()},
    }
    return SchemaRegistryClient(given, http=httpx.Client(transport=httpx.MockTransport(script)))


def always(body: object, status: int = 200) -> Script:
    return Script(lambda request: httpx.Response(status, json=body))


def test_registering_sends_the_schema_and_is_remembered() -> None:
    script = always({"id": 7, "guid": "g", "version": 2})
    registry = client(script)
    schema = Schema(
        "m", "PROTOBUF", (Reference("a.proto", "a", 1),), {"properties": {"k": "v"}}, {"domainRules": []}
    )

    first = registry.register_schema("a/b c", schema, normalize=True)
    second = registry.register_schema("a/b c", schema, normalize=True)

    assert (first.id, first.guid, first.version) == (7, "g", 2) and second == first
    [request] = script.seen
    assert request.url.raw_path == b"/subjects/a%2Fb%20c/versions?normalize=true"
    assert request.headers["content-type"] == "application/vnd.schemaregistry.v1+json"
    assert json.loads(request.content) == {
        "schema": "m",
        "schemaType": "PROTOBUF",
        "references": [{"name": "a.proto", "subject": "a", "version": 1}],
        "metadata": {"properties": {"k": "v"}},
        "ruleSet": {"domainRules": []},
    }


def test_schemas_are_asked_for_once_by_id_and_by_guid() -> None:
    script = always({"schema": '"int"', "references": []})
    registry = client(script)

    for _ in range(3):
        assert registry.get_schema(5, "s-value").schema == Schema('"int"')
        assert registry.get_schema_by_guid("0b2f8f9c-0000-0000-0000-000000000000").schema == Schema('"int"')

    assert [request.url.path for request in script.seen] == [
        "/schemas/ids/5",
        "/schemas/guids/0b2f8f9c-0000-0000-0000-000000000000",
    ]
    assert script.seen[0].url.params["subject"] == "s-value"


def test_the_cache_is_bounded() -> None:
    script = always({"schema": '"int"'})
    registry = client(script, cache_capacity=2)

    for schema_id in (1, 2, 3, 1):
        registry.get_schema(schema_id)

    assert len(script.seen) == 4


def test_the_latest_version_is_asked_for_again_when_its_time_is_over() -> None:
    script = always({"subject": "s", "version": 1, "id": 1, "schema": '"int"'})
    forever, briefly = client(script), client(script, **{"cache.latest.ttl.sec": 0})

    for _ in range(2):
        forever.get_version("s")
    assert len(script.seen) == 1
    briefly.get_version("s")
    while len(script.seen) < 3:  # the clock must move on for the entry to be old
        briefly.get_version("s")


def test_an_error_has_the_code_of_the_api() -> None:
    registry = client(always({"error_code": 40403, "message": "Schema 9 not found"}, 404))

    with pytest.raises(RegistryError, match=r"Schema 9 not found \(HTTP 404, error_code 40403\)") as refused:
        registry.get_schema(9)
    assert (refused.value.status, refused.value.code, refused.value.is_not_found) == (404, 40403, True)


def test_an_error_that_is_no_json_is_shown() -> None:
    registry = client(Script(lambda _: httpx.Response(401, text="<h1>who are you</h1>")))

    with pytest.raises(RegistryError, match="who are you") as refused:
        registry.get_subjects()
    assert refused.value.code == 401


def test_an_answer_that_is_no_json_is_an_error() -> None:
    with pytest.raises(RegistryError, match="no JSON: <h1>"):
        client(Script(lambda _: httpx.Response(200, text="<h1>"))).get_subjects()


def test_the_next_registry_is_asked_when_one_does_not_answer_and_kept() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "one":
            raise httpx.ConnectError("refused")
        return httpx.Response(200, json=["a"])

    script = Script(answer)
    registry = client(script, url="http://one/, http://two/base/")

    assert registry.get_subjects() == ["a"]
    assert registry.get_subjects() == ["a"]
    assert [str(request.url) for request in script.seen] == [
        "http://one/subjects",
        "http://two/base/subjects",
        "http://two/base/subjects",
    ]


def test_a_registry_without_a_primary_is_asked_again() -> None:
    answers = iter([503, 500, 200])

    def answer(request: httpx.Request) -> httpx.Response:
        status = next(answers)
        body = [1] if status == 200 else {"error_code": 50004, "message": "no primary"}
        return httpx.Response(status, json=body)

    assert client(Script(answer)).get_versions("s") == [1]


def test_the_last_error_is_raised_when_retries_are_used_up() -> None:
    script = always({"error_code": 50004, "message": "no primary"}, 500)

    with pytest.raises(RegistryError, match="no primary"):
        client(script, max_retries=2).get_subjects()
    assert len(script.seen) == 3

    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with pytest.raises(RegistryError, match=r"http://one could not be reached: refused") as refused:
        client(Script(refuse), max_retries=0).get_subjects()
    assert refused.value.status == 0


def test_a_refusal_is_not_repeated() -> None:
    script = always({"error_code": 42201, "message": "bad"}, 422)

    with pytest.raises(RegistryError):
        client(script).register_schema("s", STRING)
    assert len(script.seen) == 1


@pytest.mark.parametrize(
    "conf, header",
    [
        ({"url": "http://u:p%40@one"}, "Basic dTpwQA=="),
        ({"basic.auth.user.info": "u:p"}, "Basic dTpw"),
        ({"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "u:p"}, "Basic dTpw"),
        ({"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "t"}, "Bearer t"),
        ({"bearer.auth.custom.provider.function": lambda: {"bearer.auth.token": "f"}}, "Bearer f"),
        ({}, None),
    ],
)
def test_credentials_go_into_a_header(conf: dict[str, Any], header: str | None) -> None:
    script = always([])

    client(script, **conf).get_subjects()

    assert script.seen[0].headers.get("authorization") == header
    assert script.seen[0].url.userinfo == b""


@pytest.mark.parametrize(
    "conf, reason",
    [
        ({}, "url is missing"),
        ({"url": ""}, "url is missing"),
        ({"url": "one:8081"}, "no HTTP URL"),
        ({"url": "ftp://u:secret@one"}, "no HTTP URL"),
        ({"url": "http://one", "urls": "x"}, "unknown properties of a registry's client: urls"),
        (
            {"url": "http://one", "basic.auth.credentials.source": "USER_INFO"},
            "basic.auth.user.info is missing",
        ),
        ({"url": "http://one", "basic.auth.credentials.source": "FILE"}, "FILE is none of"),
        (
            {"url": "http://one", "bearer.auth.credentials.source": "STATIC_TOKEN"},
            "bearer.auth.token is missing",
        ),
        ({"url": "http://one", "bearer.auth.credentials.source": "X"}, "X is none of"),
        ({"url": "http://u:p@one", "bearer.auth.token": "t"}, "not with both"),
        ({"url": "http://one", "ssl.key.location": "k"}, "ssl.certificate.location is missing"),
    ],
)
def test_wrong_settings_are_named_without_secrets(conf: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as refused:
        SchemaRegistryClient(conf)
    assert "secret" not in str(refused.value)


def test_settings_do_not_show_secrets() -> None:
    from barnabas.schemas.client.settings import ClientSettings

    shown = repr(ClientSettings.of({"url": "http://u:geheim@one", "ssl.key.password": "geheim"}))
    assert "geheim" not in shown and "http://one" in shown


def test_tls_is_checked_and_certificates_are_read() -> None:
    from barnabas.schemas.client.http import tls_of
    from barnabas.schemas.client.settings import ClientSettings

    context = tls_of(ClientSettings.of({"url": "https://one"}))
    assert context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname
    with pytest.raises(OSError):
        tls_of(ClientSettings.of({"url": "https://one", "ssl.ca.location": "/nowhere"}))


def test_references_are_resolved_depth_first_and_circles_are_refused() -> None:
    schemas = {
        "a": {"schema": "A", "references": [{"name": "b", "subject": "b", "version": 1}]},
        "b": {"schema": "B", "references": []},
        "loop": {"schema": "L", "references": [{"name": "loop", "subject": "loop", "version": 1}]},
    }

    def answer(request: httpx.Request) -> httpx.Response:
        subject = request.url.path.split("/")[2]
        return httpx.Response(200, json={"subject": subject, "version": 1, "id": 1, **schemas[subject]})

    registry = client(Script(answer))
    from barnabas.schemas.client.faces import run

    found = run(
        registry.core.resolved(Schema("X", references=(Reference("a", "a", 1), Reference("b", "b", 1))))
    )
    assert [one.text for one in found] == ["B", "A"]
    with pytest.raises(RegistryError, match="circle: loop -> loop"):
        run(registry.core.resolved(Schema("X", references=(Reference("loop", "loop", 1),))))


def test_the_other_endpoints() -> None:
    answers: dict[tuple[str, str], object] = {
        ("GET", "/subjects?subjectPrefix=a&deleted=true"): ["a"],
        ("GET", "/subjects/s/versions"): [1, 2],
        ("DELETE", "/subjects/s?permanent=true"): [1],
        ("DELETE", "/subjects/s/versions/2"): 2,
        ("GET", "/subjects/s/versions/1/referencedby"): [4],
        ("GET", "/schemas/ids/1/versions"): [{"subject": "s", "version": 1}],
        ("POST", "/compatibility/subjects/s/versions/latest?verbose=true"): {
            "is_compatible": False,
            "messages": ["why"],
        },
        ("POST", "/compatibility/subjects/s/versions?verbose=true"): {"is_compatible": True},
        ("GET", "/config/s?defaultToGlobal=true"): {"compatibilityLevel": "FULL"},
        ("PUT", "/config"): {"compatibility": "NONE"},
        ("DELETE", "/config/s"): {"compatibilityLevel": "NONE"},
        ("GET", "/mode"): {"mode": "READWRITE"},
        ("PUT", "/mode/s?force=true"): {"mode": "IMPORT"},
        ("GET", "/contexts"): ["."],
        ("GET", "/subjects/s/metadata?key=a&key=b&value=1&value=2"): {"id": 3, "version": 1, "schema": "x"},
        ("POST", "/subjects/s"): {"id": 3, "version": 1, "schema": "x", "subject": "s"},
    }
    script = Script(lambda r: httpx.Response(200, json=answers[r.method, r.url.raw_path.decode()]))
    registry = client(script)

    assert registry.get_subjects("a", deleted=True) == ["a"]
    assert registry.get_versions("s") == [1, 2]
    assert registry.delete_subject("s", permanent=True) == [1]
    assert registry.delete_version("s", 2) == 2
    assert registry.get_referenced_by("s", 1) == [4]
    assert registry.get_usages(1) == [("s", 1)]
    verdict = registry.test_compatibility("s", STRING)
    assert not verdict.is_compatible and verdict.messages == ("why",)
    assert registry.test_compatibility("s", STRING, None).is_compatible
    assert registry.get_config("s", default_to_global=True) == {"compatibilityLevel": "FULL"}
    assert registry.set_config({"compatibility": "NONE"}) == {"compatibility": "NONE"}
    assert registry.delete_config("s") == {"compatibilityLevel": "NONE"}
    assert registry.get_mode() == "READWRITE"
    assert registry.set_mode("IMPORT", "s", force=True) == "IMPORT"
    assert registry.get_contexts() == ["."]
    assert registry.get_latest_with_metadata("s", {"a": "1", "b": "2"}).id == 3
    assert registry.lookup_schema("s", STRING).version == 1


def test_the_asynchronous_client_does_the_same() -> None:
    script = always({"id": 7})

    async def use() -> int:
        http = httpx.AsyncClient(transport=httpx.MockTransport(script))
        async with AsyncSchemaRegistryClient("http://one", http=http) as registry:
            await registry.register_schema("s", STRING)
            return (await registry.register_schema("s", STRING)).id

    assert asyncio.run(use()) == 7
    assert len(script.seen) == 1


def test_callers_who_ask_at_the_same_time_share_a_request() -> None:
    asked = 0

    async def answer(request: httpx.Request) -> httpx.Response:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        if request.url.path.endswith("404"):
            return httpx.Response(404, json={"error_code": 40403, "message": "no"})
        return httpx.Response(200, json={"schema": '"int"'})

    async def use() -> None:
        http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        async with AsyncSchemaRegistryClient("http://one", http=http) as registry:
            first = asyncio.ensure_future(registry.get_schema(5))
            rest = asyncio.gather(*(registry.get_schema(5) for _ in range(50)))
            await asyncio.sleep(0)
            first.cancel()
            assert {each.schema.text for each in await rest} == {'"int"'}
            failed = await asyncio.gather(
                *(registry.get_schema(404) for _ in range(9)), return_exceptions=True
            )
            assert all(isinstance(each, RegistryError) and each.code == 40403 for each in failed)

    asyncio.run(use())
    assert asked == 2


def test_a_blocking_serializer_refuses_the_asynchronous_client() -> None:
    from barnabas.schemas import AvroSerializer, SerializationContext

    async def slow(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0)
        return httpx.Response(200, json={"id": 1})

    http = httpx.AsyncClient(transport=httpx.MockTransport(slow))
    serializer = AvroSerializer(AsyncSchemaRegistryClient("http://one", http=http), '"string"')  # type: ignore[arg-type]

    async def use() -> None:
        with pytest.raises(RuntimeError, match="event loop"):
            serializer("x", SerializationContext("t"))

    asyncio.run(use())


def test_importing_schemas_loads_no_library() -> None:
    program = (
        "import sys, barnabas.schemas;"
        "print([m for m in ('httpx', 'fastavro', 'avro', 'jsonschema', 'google.protobuf', 'asyncio', 'kafka')"
        " if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
