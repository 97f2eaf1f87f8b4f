"""Which tokens a broker takes: signatures, keys, claims, and keys that rotate."""

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest

from barnabas.security.errors import SecuritySettingsError
from barnabas.security.oauth.checking import UNSECURED_HANDLER, TokenCheck, token_check
from barnabas.security.oauth.http import ProviderError
from barnabas.security.oauth.key_set import parse_key_set
from barnabas.security.oauth.key_source import MISSING_IDS_MAX, READ_PAUSE_S_MIN, KeySource
from barnabas.security.oauth.settings import ClaimRules, KeySettings
from barnabas.security.sasl.oauthbearer import TokenRefused
from barnabas.testing.waiting import wait_until

from .provider import (
    AUDIENCE,
    ISSUER,
    Provider,
    claims,
    ec_key,
    public_jwk,
    rsa_key,
    signed,
    signed_with_public_key,
    unsigned,
)

RULES = ClaimRules(audiences=frozenset({AUDIENCE, "other"}), issuer=ISSUER)
EVERY_KEY = [
    public_jwk(rsa_key(), "one"),
    public_jwk(ec_key(), "curve"),
    public_jwk(rsa_key(1), "only-pss", alg="PS256"),
]


def source_of(keys: list[dict[str, Any]]) -> KeySource:
    source = KeySource(KeySettings("file:///keys"), lambda: json.dumps({"keys": keys}).encode())
    assert source.read()
    return source


def check_of(rules: ClaimRules = RULES, keys: list[dict[str, Any]] | None = None) -> TokenCheck:
    return TokenCheck(rules, source_of(keys or EVERY_KEY))


def test_a_token_with_a_good_signature_and_claims_is_taken() -> None:
    payload = claims("alice")
    identity = check_of()(signed(payload))
    assert identity.name == "alice" and identity.expires_at_ms == payload["exp"] * 1000
    assert check_of()(signed(claims("bob"), ec_key(), "curve", "ES256")).name == "bob"
    assert check_of()(signed(claims("eve"), rsa_key(1), "only-pss", "PS256")).name == "eve"
    assert check_of()(signed(payload, alg="RS512")).name == "alice"


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (lambda: unsigned(claims()), "not signed"),
        (lambda: unsigned(claims()) + "AAAA", "not signed"),
        (lambda: signed_with_public_key(claims(), rsa_key(), "one"), "its alg is not one of"),
        (lambda: signed(claims(), rsa_key(1)), "signature does not hold"),
        (lambda: signed(claims(), rsa_key(1), "only-pss"), "its alg is not one of PS256"),
        (lambda: signed(claims(), ec_key(), "one", "ES256"), "its alg is not one of"),
        (lambda: signed(claims(), kid="unknown"), "has no key 'unknown'"),
        (lambda: signed(claims(), kid="k" * 1001), "more than 1000"),
        (lambda: signed(claims())[:-4], "signature does not hold"),
        (lambda: signed(claims()) + ".x", "not a JWT"),
        (lambda: signed(claims()).rpartition(".")[0] + ".", "signature does not hold"),
        (lambda: "x", "not a JWT"),
        (lambda: "x.y.z", "base64|JSON object"),
        (lambda: "go/od", "not a JWT"),
        (lambda: "....", "not a JWT"),
        (lambda: base64.urlsafe_b64encode(b"[" * 39_999).decode() + ".a.b", "JSON object"),
        (lambda: "A" * 70_000, "more than 65536"),
        (lambda: altered(signed(claims()), sub="root"), "signature does not hold"),
    ],
)
def test_a_forged_token_is_refused(token: Any, reason: str) -> None:
    with pytest.raises(TokenRefused, match=reason):
        check_of()(token())


def altered(token: str, **changes: Any) -> str:
    header, payload, signature = token.split(".")
    read = json.loads(base64.urlsafe_b64decode(payload + "=="))
    made = base64.urlsafe_b64encode(json.dumps(read | changes).encode()).rstrip(b"=").decode()
    return f"{header}.{made}.{signature}"


class Now(float):
    """Seconds after the time of the test, which is some minutes after tests were collected."""


def in_time(changes: dict[str, Any]) -> dict[str, Any]:
    moment = int(time.time())
    return {name: moment + value if isinstance(value, Now) else value for name, value in changes.items()}


REFUSED_CLAIMS: list[tuple[dict[str, Any], str]] = [
    ({"exp": Now(-31)}, "expired"),
    ({"exp": None}, "no exp"),
    ({"exp": "soon"}, "exp claim is not a number"),
    ({"exp": True}, "exp claim is not a number"),
    ({"exp": 10**30}, "exp claim is not a time"),
    ({"exp": -1}, "exp claim is not a time"),
    ({"iat": None}, "no iat"),
    ({"iat": Now(700)}, "before its iat"),
    ({"nbf": Now(3600)}, "becomes valid in"),
    ({"aud": None}, "aud claim names none"),
    ({"aud": "elsewhere"}, "aud claim names none"),
    ({"aud": [["kafka"], 7]}, "aud claim names none"),
    ({"iss": "https://else.test"}, "iss is not"),
    ({"iss": None}, "iss is not"),
    ({"sub": None}, "subject, is missing"),
    ({"sub": " "}, "subject, is missing"),
    ({"sub": 7}, "subject, is missing"),
    ({"scope": ["a", "a"]}, "twice"),
    ({"scope": ["a", ""]}, "neither a text nor a list"),
    ({"scope": 7}, "neither a text nor a list"),
    ({"scope": " "}, "empty, or neither"),
]


@pytest.mark.parametrize(("changes", "reason"), REFUSED_CLAIMS)
def test_a_claim_that_does_not_hold_is_named(changes: dict[str, Any], reason: str) -> None:
    payload = claims() | in_time(changes)
    payload = {name: value for name, value in payload.items() if value is not None}
    with pytest.raises(TokenRefused, match=reason):
        check_of()(raw_signed(payload))


def raw_signed(payload: dict[str, Any]) -> str:
    """Also claims that a library would not sign."""
    import jwt

    return jwt.PyJWS().encode(json.dumps(payload).encode(), rsa_key(), "RS256", {"kid": "one"})


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": Now(-5), "iat": Now(-600)},  # within the skew of 30 s
        {"nbf": Now(20)},
        {"aud": ["x", "other"]},
        {"scope": "read write"},
        {"scope": ["read", "write"]},
        {"exp": Now(600.5)},
    ],
)
def test_claims_at_the_edge_are_taken(changes: dict[str, Any]) -> None:
    assert check_of()(signed(claims(**in_time(changes)))).name == "alice"


def test_without_an_expected_audience_only_tokens_without_audience_are_taken() -> None:
    check = check_of(ClaimRules())
    assert check(signed(claims(aud=None))).name == "alice"
    with pytest.raises(TokenRefused, match=r"expected\.audience is not set"):
        check(signed(claims()))


def test_the_claims_of_subject_and_scope_can_have_other_names() -> None:
    check = check_of(ClaimRules(RULES.audiences, subject_claim="azp", scope_claim="scp"))
    assert check(signed(claims(azp="app", scp=["x"], scope=7))).name == "app"


def test_a_token_without_kid_is_checked_with_the_only_key_that_fits() -> None:
    assert check_of(keys=[public_jwk(rsa_key(), None)])(signed(claims(), kid=None)).name == "alice"
    assert check_of(keys=[public_jwk(rsa_key(), "one")])(signed(claims(), kid=None)).name == "alice"
    two = [public_jwk(rsa_key(), "one"), public_jwk(rsa_key(1), "two")]
    with pytest.raises(TokenRefused, match="no kid"):
        check_of(keys=two)(signed(claims(), kid=None))


def test_keys_that_cannot_be_used_are_left_out_with_a_reason() -> None:
    weak = public_jwk(rsa_key(7, 1024), "weak")
    entries: list[Any] = [7, {}, {"kty": "RSA"}, weak, public_jwk(ec_key(), "enc", use="enc")]
    entries += [public_jwk(rsa_key(), "mixed", alg="ES256"), public_jwk(ec_key(), "good")]
    keys = parse_key_set(json.dumps({"keys": entries}).encode())
    assert list(keys.by_id) == ["good"] and len(keys.left_out) == 6
    for text in (b"", b"[]", b"{}", b'{"keys": []}', b'{"keys": 7}', b"[" * 100_000):
        with pytest.raises(ValueError):
            parse_key_set(text)


def test_an_unknown_key_id_makes_the_thread_read_again_once_a_minute() -> None:
    now = [0.0]
    source = KeySource(
        KeySettings("file:///keys"), lambda: json.dumps({"keys": EVERY_KEY}).encode(), lambda: now[0]
    )
    assert source.read()

    def is_asked(key_id: str) -> bool:
        source._wake.clear()
        with pytest.raises(TokenRefused):
            source.find(key_id, "RS256")
        return source._wake.is_set()

    assert is_asked("a") and not is_asked("a")
    now[0] = 59
    assert not is_asked("a")
    assert is_asked("b")
    now[0] = 60
    assert is_asked("a")
    for number in range(MISSING_IDS_MAX):
        is_asked(f"k{number}")
    assert len(source._asked_again) == MISSING_IDS_MAX
    assert is_asked("a"), "the oldest id was forgotten"


def test_old_keys_stay_when_the_provider_fails() -> None:
    answers: list[bytes | None] = [json.dumps({"keys": EVERY_KEY}).encode(), None, b"nonsense"]

    def fetch() -> bytes:
        answer = answers.pop(0)
        if answer is None:
            raise ProviderError("no answer", may_retry=True)
        return answer

    source = KeySource(KeySettings("file:///keys"), fetch)
    assert source.read() and not source.read() and not source.read()
    assert source.find("one", "RS256")


def test_keys_of_a_url_rotate(caplog: pytest.LogCaptureFixture) -> None:
    settings = {
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
    }
    with Provider() as provider:
        provider.failures = 1  # the first read fails and is repeated
        check = token_check({**settings, "sasl.oauthbearer.jwks.endpoint.url": provider.jwks_url}, {})

        def taken(token: str) -> bool:
            try:
                return check(token).name == "alice"
            except TokenRefused:
                return False

        wait_until(lambda: taken(signed(claims())), 10)
        provider.keys = [public_jwk(rsa_key(1), "two")]
        wait_until(lambda: taken(signed(claims(), rsa_key(1), "two")), 10)
        assert not taken(signed(claims()))
        seen, begun = len(provider.asked), time.monotonic()
        for number in range(50):
            assert not taken(signed(claims(), kid=f"unknown-{number}"))
        assert len(provider.asked) - seen <= 1 + (time.monotonic() - begun) / READ_PAUSE_S_MIN
    assert "503" in caplog.text


def test_keys_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": EVERY_KEY}))
    check = token_check({"sasl.oauthbearer.jwks.endpoint.url": file.as_uri()}, {})
    assert check(signed(claims(aud=None))).name == "alice"


def test_unsigned_tokens_are_taken_only_where_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    check = token_check({"sasl.server.callback.handler.class": UNSECURED_HANDLER}, {})
    assert "unsigned tokens" in caplog.text
    assert check(unsigned(claims())).name == "alice"
    assert check(unsigned(claims(iat=None, aud=None))).name == "alice"
    with pytest.raises(TokenRefused, match="signed"):
        check(signed(claims()))
    with pytest.raises(TokenRefused, match="expired"):
        check(unsigned(claims(exp=int(time.time()) - 5)))
    strict = token_check(
        {"sasl.server.callback.handler.class": UNSECURED_HANDLER},
        {"unsecuredValidatorRequiredScope": "a b", "unsecuredValidatorPrincipalClaimName": "azp"},
    )
    assert strict(unsigned(claims(azp="app", scope="b a c"))).name == "app"
    with pytest.raises(TokenRefused) as refused:
        strict(unsigned(claims(azp="app", scope="b")))
    assert refused.value.told() == '{"status":"insufficient_scope","scope":"a b"}'


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "set sasl.oauthbearer.jwks.endpoint.url"),
        ({"sasl.server.callback.handler.class": "x.Y"}, "is unknown"),
        (
            {
                "sasl.server.callback.handler.class": "org.apache.kafka.common.security.oauthbearer"
                ".OAuthBearerValidatorCallbackHandler"
            },
            "is not set",
        ),
        ({"sasl.oauthbearer.jwks.endpoint.url": "ftp://x/y"}, "http, https or file"),
        (
            {
                "sasl.oauthbearer.jwks.endpoint.url": "http://127.0.0.1:1/",
                "sasl.oauthbearer.clock.skew.seconds": "x",
            },
            "not a whole number",
        ),
    ],
)
def test_settings_that_cannot_be_used_are_named(settings: dict[str, str], problem: str) -> None:
    with pytest.raises(SecuritySettingsError, match=problem):
        token_check(settings, {})


def test_a_provider_that_does_not_respond_refuses_tokens_and_says_why() -> None:
    check = token_check({"sasl.oauthbearer.jwks.endpoint.url": "http://127.0.0.1:1/jwks"}, {})
    with pytest.raises(TokenRefused, match=r"is not there: .*refused"):
        check(signed(claims()))
