"""PLAIN and SCRAM, both sides, without a network."""

import base64
from random import Random

import pytest
from tests.security.exchanges import Credentials, client, log_in, server

from barnabas.security.errors import AuthenticationFailed, SecuritySettingsError
from barnabas.security.sasl.mechanisms import TokenLogin
from barnabas.security.sasl.plain import PlainServer
from barnabas.security.sasl.scram import ScramClient, ScramLogin, ScramServer
from barnabas.security.sasl.scram_messages import parse_client_first

SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")


# -- PLAIN ---------------------------------------------------------------------------------------


def test_plain_lets_in_the_users_of_the_jaas_entry() -> None:
    offered = server("PLAIN", options={"username": "x", "user_alice": "s3cret", "user_b\u00e4r": "p\u00e4ss"})
    for user, password in (("alice", "s3cret"), ("b\u00e4r", "p\u00e4ss")):
        exchange = offered.new_exchange()
        assert log_in(client("PLAIN", username=user, password=password), exchange) == 1
        assert exchange.identity is not None and exchange.identity.name == user


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0s3cret", "Authentication failed: Invalid username or password"),
        (b"\0x\0y", "Authentication failed: Invalid username or password"),  # no user: the broker's own login
        (b"\0\xff\0s3cret", "Authentication failed: Invalid username or password"),
        (b"\0\0s3cret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0s3cret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"bob\0alice\0s3cret",
         "Authentication failed: Client requested an authorization id that is different from username"),
    ],
)  # fmt: skip
def test_plain_refuses(message: bytes, told: str) -> None:
    exchange = server(
        "PLAIN", options={"username": "x", "password": "y", "user_alice": "s3cret"}
    ).new_exchange()
    with pytest.raises(AuthenticationFailed) as refused:
        exchange.step(message)
    assert refused.value.told == told
    assert "s3cret" not in refused.value.reason and "wrong password" not in refused.value.told
    assert exchange.identity is None


def test_plain_accepts_an_authorization_id_that_is_the_user() -> None:
    exchange = server("PLAIN", options={"user_alice": "s3cret"}).new_exchange()
    assert exchange.step(b"alice\0alice\0s3cret") == b""


def verify_for_tests(user: str, password: str) -> bool:
    return password == user[::-1]


def test_plain_asks_a_python_entry_point_in_a_thread() -> None:
    settings = {"sasl.server.callback.handler.class": f"{__name__}:verify_for_tests"}
    offered = server("PLAIN", settings=settings)
    assert offered.is_slow(b"")
    log_in(client("PLAIN", username="abc", password="cba"), offered.new_exchange())
    with pytest.raises(AuthenticationFailed):
        log_in(client("PLAIN", username="abc", password="abc"), offered.new_exchange())


def test_an_entry_point_that_is_not_there_is_named() -> None:
    with pytest.raises(SecuritySettingsError, match=r"nowhere\.at\.all:it cannot be loaded"):
        server("PLAIN", settings={"sasl.server.callback.handler.class": "nowhere.at.all:it"})


def test_plain_without_a_jaas_entry_says_which_setting_is_missing() -> None:
    with pytest.raises(SecuritySettingsError, match=r"listener\.name\.clients\.plain\.sasl\.jaas\.config"):
        server("PLAIN")


def test_a_client_without_a_password_says_what_is_missing() -> None:
    with pytest.raises(SecuritySettingsError, match="password"):
        client("PLAIN", username="alice")


def test_a_mechanism_that_nobody_has_is_refused() -> None:
    with pytest.raises(SecuritySettingsError, match="CRAM-MD5 is not supported"):
        server("CRAM-MD5")


# -- SCRAM ---------------------------------------------------------------------------------------


def test_scram_sha_256_gives_the_messages_of_the_rfc() -> None:
    """The example of RFC 7677, section 3."""
    credentials = Credentials()
    credentials.add("SCRAM-SHA-256", "user", "pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
    ours = ScramServer("SCRAM-SHA-256", credentials, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    theirs = ScramClient(ScramLogin("SCRAM-SHA-256", "user", "pencil"), "rOprNGfwEbeRWgbNEkqO")
    first = theirs.first()
    assert first == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    challenge = ours.step(first)
    assert challenge == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    final = theirs.step(challenge)
    assert final == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    verdict = ours.step(final)
    assert verdict == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert theirs.step(verdict) is None
    assert ours.identity is not None and ours.identity.name == "user"


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize("user", ["alice", "a=b,c", "=2C", "b\u00e4r"])
def test_scram_lets_in_who_knows_the_password(mechanism: str, user: str) -> None:
    credentials = Credentials()
    credentials.add(mechanism, user, "s3cret", iterations=8192)
    exchange = server(mechanism, credentials).new_exchange()
    assert log_in(client(mechanism, username=user, password="s3cret"), exchange) == 2
    assert exchange.identity is not None and exchange.identity.name == user


@pytest.mark.parametrize("mechanism", SCRAM)
def test_an_unknown_user_looks_like_a_wrong_password(mechanism: str) -> None:
    credentials = Credentials()
    credentials.add(mechanism, "alice", "s3cret", salt=b"x" * 24)
    seen = []
    for user in ("alice", "nobody", "nobody"):
        exchange = server(mechanism, credentials).new_exchange()
        ours = client(mechanism, username=user, password="wrong")
        challenge = exchange.step(ours.first())
        final = ours.step(challenge)
        assert final is not None
        with pytest.raises(AuthenticationFailed) as refused:
            exchange.step(final)
        assert exchange.identity is None
        seen.append((challenge, refused.value.told))
    alice, nobody, again = seen
    assert nobody == again  # the salt of a user that does not exist is always the same
    assert len(nobody[0]) == len(alice[0])
    invalid = "Authentication failed during authentication due to invalid credentials with SASL mechanism "
    assert nobody[1] == alice[1] == invalid + mechanism


def test_every_unknown_user_has_a_salt_of_its_own() -> None:
    challenges = {
        server("SCRAM-SHA-256").new_exchange().step(b"n,,n=" + name + b",r=x") for name in (b"a", b"b", b"c")
    }
    assert len(challenges) == 3


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,n=alice",
        b"n,,r=x",
        b"n,,n=,r=x",
        b"n,,n=alice,r=",
        b"y,,n=alice,r=x",
        b"p=tls-unique,,n=alice,r=x",
        b"n,,n=al=ice,r=x",
        b"n,,n=alice,r=x,",
        b"n,,n=alice,r=x,1=2",
        b"n,,n=\xff\xfe,r=x",
        b"n,,n=al\0ice,r=x",
        b"n,a=bob,n=alice,r=x",
        b"n,,n=" + b"a" * 70_000 + b",r=x",
    ],
)
def test_scram_refuses_a_wrong_first_message(message: bytes) -> None:
    credentials = Credentials()
    credentials.add("SCRAM-SHA-256", "alice", "s3cret")
    with pytest.raises(AuthenticationFailed):
        server("SCRAM-SHA-256", credentials).new_exchange().step(message)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"c=biws", b"c=eSws"),  # "y,,": the client saw another offer
        (b"r=", b"r=x"),
        (b",p=", b",p=AA"),
        (b",p=", b",q="),
        (b"p=", b"p=====" ),
    ],
)  # fmt: skip
def test_scram_refuses_a_changed_last_message(old: bytes, new: bytes) -> None:
    credentials = Credentials()
    credentials.add("SCRAM-SHA-256", "alice", "s3cret")
    exchange = server("SCRAM-SHA-256", credentials).new_exchange()
    ours = client("SCRAM-SHA-256", username="alice", password="s3cret")
    final = ours.step(exchange.step(ours.first()))
    assert final is not None
    with pytest.raises(AuthenticationFailed):
        exchange.step(final.replace(old, new, 1))


def test_a_client_that_repeats_its_own_nonce_is_refused() -> None:
    """CVE-2024-56128: librdkafka before 2.8 does so."""
    credentials = Credentials()
    credentials.add("SCRAM-SHA-256", "alice", "s3cret")
    exchange = server("SCRAM-SHA-256", credentials).new_exchange()
    exchange.step(b"n,,n=alice,r=mine")
    with pytest.raises(AuthenticationFailed, match="nonce"):
        exchange.step(b"c=biws,r=minemine,p=" + base64.b64encode(bytes(32)))


def test_unknown_extensions_are_ignored_and_signed() -> None:
    first = parse_client_first(b"n,a=alice,n=alice,r=x,tokenauth=true,other=1=2")
    assert first.extensions == {"tokenauth": "true", "other": "1=2"}
    assert first.bare == "n=alice,r=x,tokenauth=true,other=1=2"
    assert first.header == "n,a=alice,"


@pytest.mark.parametrize(
    "challenge",
    [
        b"r=other,s=AAAA,i=4096",
        b"r=%s,s=AAAA,i=4096",  # no nonce of the server
        b"r=%sx,s=AAAA,i=4095",
        b"r=%sx,s=AAAA,i=900000000",
        b"r=%sx,s=,i=4096",
        b"r=%sx,s=A,i=4096",
        b"e=other-error",
        b"",
    ],
)
def test_a_client_refuses_a_wrong_challenge(challenge: bytes) -> None:
    ours = client("SCRAM-SHA-256", username="alice", password="s3cret")
    nonce = ours.first().rpartition(b"r=")[2]
    with pytest.raises(AuthenticationFailed):
        ours.step(challenge.replace(b"%s", nonce))


@pytest.mark.parametrize("verdict", [b"v=AAAA", b"e=invalid-proof", b"", b"\xff"])
def test_a_client_refuses_a_server_that_does_not_know_the_password(verdict: bytes) -> None:
    credentials = Credentials()
    credentials.add("SCRAM-SHA-512", "alice", "s3cret")
    exchange = server("SCRAM-SHA-512", credentials).new_exchange()
    ours = client("SCRAM-SHA-512", username="alice", password="s3cret")
    ours.step(exchange.step(ours.first()))
    with pytest.raises(AuthenticationFailed):
        ours.step(verdict)


def test_a_password_is_salted_once_for_all_logins_of_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    from barnabas.security.sasl import scram

    calls = []
    real = scram.salted_password
    monkeypatch.setattr(scram, "salted_password", lambda *args: calls.append(args) or real(*args))
    credentials = Credentials()
    credentials.add("SCRAM-SHA-256", "alice", "s3cret")
    login = ScramLogin("SCRAM-SHA-256", "alice", "s3cret")
    for nonce in ("a", "b", "c"):
        log_in(ScramClient(login, nonce), server("SCRAM-SHA-256", credentials).new_exchange())
    assert len(calls) == 1


# -- delegation tokens ---------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", SCRAM)
def test_a_token_logs_in_its_owner(mechanism: str) -> None:
    credentials = Credentials(tokens={"id-1": TokenLogin("alice", "aG1hYw==", 5_000)})
    offered = server(mechanism, credentials)
    login = {"username": "id-1", "password": "aG1hYw==", "tokenauth": "true"}
    ours = client(mechanism, **login)
    assert offered.is_slow(ours.first())
    exchange = offered.new_exchange()
    log_in(ours, exchange)
    assert exchange.identity is not None
    assert exchange.identity == type(exchange.identity)("alice", is_token=True, expires_at_ms=5_000)
    for wrong in ({"password": "xxxx"}, {"username": "id-2"}, {"tokenauth": "false"}):
        exchange = offered.new_exchange()
        with pytest.raises(AuthenticationFailed):
            log_in(client(mechanism, **{**login, **wrong}), exchange)
        assert exchange.identity is None


def test_plain_server_is_used_once_for_a_login() -> None:
    exchange = PlainServer(lambda user, password: True)
    assert exchange.identity is None
    exchange.step(b"\0a\0b")
    assert exchange.identity is not None


# -- what must not be seen, and what must not happen ---------------------------------------------


@pytest.mark.parametrize("mechanism", SCRAM)
def test_as_much_is_computed_for_an_unknown_user_as_for_a_known_one(
    mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from barnabas.security.sasl import scram

    credentials = Credentials()
    credentials.add(mechanism, "alice", "s3cret")
    calls: list[int] = []
    real = scram.hmac.digest

    def digest(key: bytes, message: bytes, algorithm: str) -> bytes:
        calls.append(len(key))
        return real(key, message, algorithm)

    computed = {}
    for user in ("alice", "nobody"):
        exchange = server(mechanism, credentials).new_exchange()
        ours = client(mechanism, username=user, password="wrong")
        final = ours.step(exchange.step(ours.first()))
        assert final is not None
        again = server(mechanism, credentials).new_exchange()
        monkeypatch.setattr(scram.hmac, "digest", digest)
        calls.clear()
        again.step(ours.first())
        with pytest.raises(AuthenticationFailed):
            again.step(final)
        monkeypatch.undo()
        computed[user] = list(calls)
    assert computed["alice"] == computed["nobody"] != []


def mangled(message: bytes, rng: Random) -> bytes:
    data = bytearray(message)
    for _ in range(rng.randrange(1, 4)):
        where = rng.randrange(len(data) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            data[where:where] = rng.choice(
                (b",", b"=", b"\0", b"n=", b"r=", b",,", b"\xff", rng.randbytes(3))
            )
        elif kind == 1:
            del data[where : where + rng.randrange(1, 9)]
        elif kind == 2 and where < len(data):
            data[where] ^= 1 << rng.randrange(8)
        else:
            data = data[:where]
    return bytes(data)


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM])
def test_no_mangled_message_logs_in_or_breaks_the_server(mechanism: str) -> None:
    rng = Random(mechanism)
    credentials = Credentials()
    credentials.add("SCRAM-SHA-256", "alice", "s3cret")
    credentials.add("SCRAM-SHA-512", "alice", "s3cret")
    offered = server(mechanism, credentials, {"user_alice": "s3cret"})
    ours = client(mechanism, username="alice", password="s3cret")
    for _ in range(300):
        exchange = offered.new_exchange()
        message: bytes | None = ours.first()
        is_mangled = False
        try:
            while message is not None:
                sent = mangled(message, rng) if rng.random() < 0.6 else message
                is_mangled = is_mangled or sent != message
                message = ours.step(exchange.step(sent))
        except AuthenticationFailed:
            assert is_mangled
            ours = client(mechanism, username="alice", password="s3cret")
            continue
        identity = exchange.identity
        assert identity is not None and identity.name == "alice"
        # A message that was changed may still be right: base64 has bits that do not count.
        ours = client(mechanism, username="alice", password="s3cret")
