"""Callers: passwords, tokens, certificates, roles and rates; clients that log in as them."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from barnabas.security.errors import SecuritySettingsError
from barnabas.security.principal import Principal
from barnabas.services.caller import Caller, CredentialKind, caller_of
from barnabas.services.callers import guard as guards
from barnabas.services.callers.broker_logins import security_of_caller
from barnabas.services.callers.building import guard_of
from barnabas.services.callers.client_pool import ClientPool
from barnabas.services.callers.credentials import Basic, Bearer, parse_authorization
from barnabas.services.callers.guard import PEER_SUBJECT, CallerGuard, Methods
from barnabas.services.callers.rates import PRINCIPALS_MAX, Rates
from barnabas.services.callers.rights import Rights
from barnabas.services.callers.users import hashed_password, parse_users
from barnabas.services.errors import ApiError
from barnabas.services.routes import Need
from barnabas.services.settings.loading import load_settings
from security.provider import AUDIENCE, ISSUER, claims, public_jwk, rsa_key, signed
from services.asgi import app_of, client_of, route

USERS = "alice: secret,admin\nbob: MD5:{md5},reader,other\ncarol: {slow}\n"


@pytest.fixture(autouse=True)
def refuses_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "REFUSED_AFTER_S", 0)


def users_text() -> str:
    return USERS.format(md5=hashlib.md5(b"builder").hexdigest(), slow=hashed_password("slow one", 1000))


def basic(name: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def settings_of(**changes: str) -> Any:
    given = {"bootstrap.servers": "localhost:9092"} | {
        name.replace("_", "."): text for name, text in changes.items()
    }
    return load_settings("rest", overrides=given)


async def whoami(request: Request) -> Response:
    caller = caller_of(request)
    return JSONResponse([caller.principal.name, str(caller.kind), caller.secret, sorted(caller.roles)])


def asked(
    guard: CallerGuard | None, *requests: dict[str, str], path: str = "/who", **given: Any
) -> list[Any]:
    """Status and body of each request."""

    async def run() -> list[Any]:
        routes = [
            route("/who", whoami, **given),
            route("/write", whoami, needs=Need.WRITE),
            route("/admin", whoami, needs=Need.ADMIN),
        ]
        found = []
        async with client_of(app_of(routes, guard)) as client:
            for headers in requests:
                response = await client.get(path, headers=headers)
                found.append((response.status_code, response.json()))
        return found

    return asyncio.run(run())


def statuses(guard: CallerGuard | None, *requests: dict[str, str], path: str = "/who") -> list[int]:
    return [status for status, _ in asked(guard, *requests, path=path)]


def test_a_users_file_of_jetty_is_read_and_hashes_are_taken() -> None:
    users = parse_users(users_text())
    assert users.roles_of("alice", "secret") == {"admin"}
    assert users.roles_of("bob", "builder") == {"reader", "other"}
    assert users.is_slow("carol", "slow one")
    assert users.is_slow("nobody", "x")  # as slow as a user that is there
    assert users.roles_of("carol", "slow one") == frozenset()
    assert not users.is_slow("carol", "slow one")  # proven, so it is quick now
    assert users.is_slow("carol", "another")
    for name, password in (("alice", "secre"), ("bob", "MD5:"), ("carol", ""), ("nobody", ""), ("", "")):
        assert users.roles_of(name, password) is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("alice:", "'alice' has no password"),
        ("alice: ,admin", "'alice' has no password"),
        ("alice: MD5:xyz", "is no hash"),
        ("alice: PBKDF2:0:aa:bb", "is no hash"),
        ("alice: PBKDF2:99999999999:YQ==:YQ==", "is no hash"),
        ("alice: OBF:1u2a1toa", "OBF:, which is not supported"),
    ],
)
def test_wrong_lines_are_refused_without_showing_passwords(line: str, words: str) -> None:
    with pytest.raises(SecuritySettingsError, match=words) as caught:
        parse_users(line)
    assert "1u2a1toa" not in str(caught.value)


def test_basic_authentication(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text(users_text())
    guard = guard_of(settings_of(authentication_method="BASIC", barnabas_authentication_users_file=str(file)))
    assert asked(guard, basic("alice", "secret"), basic("carol", "slow one")) == [
        (200, ["alice", "basic", "secret", ["admin"]]),
        (200, ["carol", "basic", "slow one", []]),
    ]
    wrong = (
        {},
        basic("alice", "wrong"),
        basic("nobody", "secret"),
        {"authorization": "Basic !!!"},
        {"authorization": "Bearer x.y.z"},
        {"authorization": "Basic " + base64.b64encode(b"no colon").decode()},
        {"authorization": "x" * 100_000},
    )
    assert statuses(guard, *wrong) == [401] * len(wrong)
    told = {body["message"] for _, body in asked(guard, *wrong[1:])}
    assert len(told) == 1  # names and passwords cannot be told apart


def test_guesses_of_hashed_passwords_are_checked_a_few_at_a_time() -> None:
    users = parse_users(f"carol: {hashed_password('slow one', 1000)}")
    checked = users.roles_of
    running: list[int] = [0, 0]

    def noted(name: str, password: str) -> frozenset[str] | None:
        running[0] += 1
        running[1] = max(running)
        time.sleep(0.005)
        running[0] -= 1
        return checked(name, password)

    users.roles_of = noted  # type: ignore[method-assign]
    guard = CallerGuard(Methods(users=users), Rights(), Rates(0, 0, 1))

    async def run() -> None:
        async with client_of(app_of([route("/who", whoami)], guard)) as client:
            guesses = [client.get("/who", headers=basic("carol", str(number))) for number in range(20)]
            found = await asyncio.gather(*guesses, client.get("/who", headers=basic("carol", "slow one")))
        assert [each.status_code for each in found] == [401] * 20 + [200]

    asyncio.run(run())
    assert running[1] == guards.SLOW_CHECKS_MAX


def test_the_users_of_a_jaas_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "users").write_text("alice: secret\n")
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(
        "SchemaRegistry-Props { org.eclipse.jetty.jaas.spi.PropertyFileLoginModule required "
        f'file="{tmp_path}/users" debug="false"; }};'
    )
    monkeypatch.setenv("KAFKA_OPTS", f"-Djava.security.auth.login.config={jaas}")
    guard = guard_of(settings_of(authentication_method="BASIC", authentication_realm="SchemaRegistry-Props"))
    assert statuses(guard, basic("alice", "secret"), basic("alice", "x")) == [200, 401]


def test_bearer_tokens_of_a_key_set(tmp_path: Path) -> None:
    keys = tmp_path / "jwks.json"
    keys.write_text(json.dumps({"keys": [public_jwk(rsa_key(), "one")]}))
    guard = guard_of(
        settings_of(
            authentication_method="BEARER,BASIC",
            confluent_rest_auth_propagate_method="JETTY_AUTH",
            oauthbearer_jwks_endpoint_url=f"file://{keys}",
            oauthbearer_expected_audience=AUDIENCE,
            oauthbearer_expected_issuer=ISSUER,
        )
    )
    token = signed(claims("alice", scope="reader writer"))
    good = {"authorization": f"Bearer {token}"}
    bad = {"authorization": f"Bearer {signed(claims('alice', aud='other'))}"}
    expired = {"authorization": f"Bearer {signed(claims('alice', iat=1, exp=2))}"}
    found = asked(guard, good, good, bad, expired, {"authorization": "Bearer "})
    assert found[0] == found[1] == (200, ["alice", "bearer", token, ["reader", "writer"]])
    assert [status for status, _ in found[2:]] == [401] * 3


def test_a_password_that_the_brokers_check_is_passed_on() -> None:
    guard = guard_of(
        settings_of(authentication_method="BASIC", confluent_rest_auth_propagate_method="JETTY_AUTH")
    )
    assert asked(guard, basic("alice", "any"), {}) == [
        (200, ["alice", "basic", "any", []]),
        (401, {"error_code": 401, "message": "HTTP 401 Unauthorized: say who you are"}),
    ]


def test_the_name_in_a_certificate_is_the_caller() -> None:
    guard = guard_of(
        settings_of(
            ssl_client_authentication="REQUESTED",
            ssl_principal_mapping_rules="RULE:^CN=([a-z]+),O=Rig$/$1/U",
        )
    )
    assert guard is not None

    async def caller(subject: str | None) -> Caller:
        return await guard({"path": "/", "headers": [], "state": {PEER_SUBJECT: subject}}, Need.READ)

    assert asyncio.run(caller("CN=alice,O=Rig")) == Caller(Principal("ALICE"), CredentialKind.CERTIFICATE)
    assert asyncio.run(caller(None)).kind is CredentialKind.NONE
    with pytest.raises(ApiError) as caught:
        asyncio.run(caller("CN=x,O=Other"))
    assert caught.value.status == 403


def test_a_certificate_is_no_credential_for_the_brokers() -> None:
    guard = guard_of(
        settings_of(
            authentication_method="BASIC",
            confluent_rest_auth_propagate_method="JETTY_AUTH",
            ssl_client_authentication="REQUESTED",
        )
    )
    assert guard is not None
    scope = {"path": "/", "headers": [], "state": {PEER_SUBJECT: "CN=alice,O=Rig"}}
    with pytest.raises(ApiError, match="say who you are"):
        asyncio.run(guard(scope, Need.READ))


def test_roles_bound_what_callers_may_do(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text("reader: p,r\nwriter: p,w\nadmin: p,a\nstranger: p,none\n")
    guard = guard_of(
        settings_of(
            authentication_method="BASIC",
            barnabas_authentication_users_file=str(file),
            authentication_roles="r,w,a",
            barnabas_authentication_roles_read="r",
            barnabas_authentication_roles_write="w",
            barnabas_authentication_roles_admin="a",
        )
    )
    callers = [basic(name, "p") for name in ("reader", "writer", "admin", "stranger")]
    assert statuses(guard, *callers, path="/who") == [200, 200, 200, 403]
    assert statuses(guard, *callers, path="/write") == [403, 200, 200, 403]
    assert statuses(guard, *callers, path="/admin") == [403, 403, 200, 403]
    assert statuses(guard, *callers, {}, path="/health") == [200] * 5
    assert statuses(guard, {}, path="/metrics") == [401]


def test_the_access_log_names_callers_that_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    methods = Methods(users=parse_users("bob: p,viewers"))
    guard = CallerGuard(methods, Rights(read=["viewers"], write=["others"]), Rates(0, 0, 1))
    caplog.set_level(logging.INFO, "barnabas.sample.access")
    assert statuses(guard, basic("bob", "p"), path="/write") == [403]
    assert '127.0.0.1 bob "GET /write" 403' in caplog.text


def test_everybody_may_read_where_a_star_says_so() -> None:
    rights = Rights(read=["*"], admin=["boss"])
    rights.check(Caller(), Need.READ)
    with pytest.raises(ApiError, match="no role with the right to write"):
        rights.check(Caller(), Need.WRITE)
    rights.check(Caller(roles=frozenset({"boss"})), Need.ADMIN)


def test_paths_that_need_no_name() -> None:
    methods = Methods(users=parse_users("a: b"), open_paths=("/who", "/wri*"))
    guard = CallerGuard(methods, Rights(), Rates(0, 0, 1))
    assert [statuses(guard, {}, path=path)[0] for path in ("/who", "/write", "/admin")] == [200, 200, 401]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"authentication_method": "BASIC"}, "needs users"),
        ({"authentication_method": "BEARER"}, "needs oauthbearer.jwks"),
        (
            {"authentication_method": "BASIC", "barnabas_authentication_users_file": "/nowhere/users"},
            "/nowhere/users cannot be read: No such file",
        ),
        ({"authentication_roles": "admin"}, "nobody would have a role"),
        ({"confluent_rest_auth_propagate_method": "JETTY_AUTH"}, "needs callers with credentials"),
        (
            {"ssl_client_authentication": "REQUIRED", "ssl_principal_mapping_rules": "nonsense"},
            "is not a rule",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused(changes: dict[str, str], words: str) -> None:
    with pytest.raises(SecuritySettingsError, match=words):
        guard_of(settings_of(**changes))


def test_without_settings_nobody_is_asked() -> None:
    assert guard_of(settings_of()) is None


def test_requests_beyond_the_rate_get_429_and_other_principals_do_not() -> None:
    now = [0.0]
    rates = Rates(2, 0, 2, clock=lambda: now[0])
    for _ in range(4):  # two seconds' worth
        rates.enter("alice")
    with pytest.raises(ApiError) as caught:
        rates.enter("alice")
    assert (caught.value.status, caught.value.headers) == (429, {"retry-after": "1"})
    rates.enter("bob")
    now[0] += 0.5
    rates.enter("alice")
    with pytest.raises(ApiError):
        rates.enter("alice")


def test_bytes_beyond_the_rate_are_paid_for_later() -> None:
    now = [0.0]
    rates = Rates(0, 100, 1, clock=lambda: now[0])
    spend = rates.enter("alice")
    assert spend(100) == 0
    assert spend(300) == 3  # a stream waits for so long
    with pytest.raises(ApiError) as caught:
        rates.enter("alice")
    assert caught.value.headers == {"retry-after": "3"}
    now[0] += 3
    rates.enter("alice")


def test_the_table_of_rates_is_bounded() -> None:
    rates = Rates(1, 0, 1, clock=lambda: 0.0)
    for number in range(PRINCIPALS_MAX + 10):
        rates.enter(f"user-{number}")
    rates.enter("user-0")  # forgotten
    with pytest.raises(ApiError):
        rates.enter(f"user-{PRINCIPALS_MAX}")


def test_bodies_count_against_the_rate_of_their_caller() -> None:
    async def size(request: Request) -> Response:
        return JSONResponse(len(await request.body()))

    async def streamed(request: Request) -> Response:
        return JSONResponse(sum([len(chunk) async for chunk in request.stream()]))

    guard = CallerGuard(Methods(), Rights(), Rates(0, 100, 1, clock=lambda: 0.0))

    async def run() -> None:
        routes = [
            route("/size", size, methods=["POST"]),
            route("/stream", streamed, methods=["POST"], is_stream=True),
        ]
        async with client_of(app_of(routes, guard)) as client:
            assert (await client.post("/stream", content=b"x" * 60)).json() == 60
            assert (await client.post("/size", content=b"x" * 60)).json() == 60
            assert (await client.post("/size", content=b"x")).status_code == 429
            assert (await client.get("/health")).status_code == 200

    asyncio.run(run())


@given(st.text(max_size=80))
def test_any_header_is_parsed_or_refused(text: str) -> None:
    for header in (text, f"Basic {text}", f"bearer {text}"):
        found = parse_authorization(header)
        assert found is None or isinstance(found, Basic | Bearer)


def test_secrets_are_not_shown() -> None:
    caller = Caller(Principal("alice"), CredentialKind.BASIC, "s3cret")
    assert "s3cret" not in repr(caller)


def test_a_caller_logs_in_at_the_brokers() -> None:
    plain = security_of_caller(Caller(Principal("alice"), CredentialKind.BASIC, "pw"), {})
    assert (plain.protocol, plain.mechanism, plain.tls) == ("SASL_PLAINTEXT", "PLAIN", None)
    assert plain.new_exchange is not None
    assert plain.new_exchange("host").first() == b"\0alice\0pw"
    scram = security_of_caller(
        Caller(Principal("alice"), CredentialKind.BASIC, "pw"), {}, mechanism="SCRAM-SHA-512"
    )
    assert scram.mechanism == "SCRAM-SHA-512"
    bearer = security_of_caller(
        Caller(Principal("alice"), CredentialKind.BEARER, "a.b.c"), {"security.protocol": "SSL"}
    )
    assert (bearer.protocol, bearer.mechanism) == ("SASL_SSL", "OAUTHBEARER")
    assert bearer.tls is not None and bearer.new_exchange is not None
    assert b"Bearer a.b.c" in bearer.new_exchange("host").first()
    with pytest.raises(ApiError, match="the brokers want to know you"):
        security_of_caller(Caller(), {})


class Clients:
    """Makes numbered clients, and notes which were closed."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.closed: list[str] = []
        self.now = 0.0
        self.fails = False

    async def make(self, caller: Caller) -> str:
        await asyncio.sleep(0)
        if self.fails:
            raise OSError("no broker")
        self.made.append(caller.principal.name)
        return caller.principal.name

    async def close(self, client: str) -> None:
        self.closed.append(client)
        if client == "bad":
            raise OSError("closed twice")

    def pool(self, clients_max: int = 2) -> ClientPool[str]:
        return ClientPool(self.make, self.close, clients_max=clients_max, idle_s=10, clock=lambda: self.now)


def caller(name: str, secret: str = "") -> Caller:
    return Caller(Principal(name), CredentialKind.BASIC, secret)


def test_a_caller_keeps_its_client_until_it_is_idle_or_changes_its_password() -> None:
    async def run() -> None:
        clients = Clients()
        pool = clients.pool()

        async def one() -> None:
            async with pool.use(caller("alice")) as client:
                assert client == "alice"

        await asyncio.gather(one(), one(), one())
        assert clients.made == ["alice"]
        async with pool.use(caller("alice", "new password")):
            assert clients.made == ["alice", "alice"]
            clients.now += 100
            await pool.sweep()
            assert (clients.closed, len(pool)) == (["alice"], 1)
        clients.now += 5
        await pool.sweep()
        assert len(pool) == 1
        clients.now += 5
        await pool.sweep()
        assert len(pool) == 0

    asyncio.run(run())


def test_a_full_pool_closes_what_is_idle_longest_and_refuses_if_nothing_is() -> None:
    async def run() -> None:
        clients = Clients()
        pool = clients.pool()
        for name in ("a", "b", "a", "c"):
            async with pool.use(caller(name)):
                pass
        assert clients.closed == ["b"]
        async with pool.use(caller("a")), pool.use(caller("c")):
            with pytest.raises(ApiError, match="2 callers have clients") as caught:
                async with pool.use(caller("d")):
                    pass
            assert caught.value.status == 503
        await pool.close()
        assert (sorted(clients.closed), len(pool)) == (["a", "b", "c"], 0)

    asyncio.run(run())


def test_a_client_that_cannot_be_made_is_made_anew(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        clients = Clients()
        pool = clients.pool()
        pool.start()
        clients.fails = True
        for _ in range(2):
            with pytest.raises(OSError, match="no broker"):
                async with pool.use(caller("bad")):
                    pass
        assert len(pool) == 0
        clients.fails = False
        async with pool.use(caller("bad")) as client:
            assert client == "bad"
        await pool.close()  # closing fails, which is logged

    asyncio.run(run())
    assert "did not close in order" in caplog.text
