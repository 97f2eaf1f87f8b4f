"""Where clients get their tokens, and when they replace them."""

import ssl
from collections.abc import Mapping
from pathlib import Path

import jwt
import pytest

from barnabas.security.errors import AuthenticationFailed, SecuritySettingsError
from barnabas.security.oauth.checking import UNSECURED_HANDLER, token_check
from barnabas.security.oauth.http import ProviderError, request
from barnabas.security.oauth.login import Login, client_exchanges, refresh_after_s
from barnabas.security.oauth.retrieving import token_retriever
from barnabas.security.oauth.settings import RefreshSettings, shown
from barnabas.security.sasl.mechanism import Identity
from barnabas.security.sasl.oauthbearer import parse_first_message
from barnabas.testing.waiting import wait_until

from .exchanges import server
from .provider import CLIENT_ID, CLIENT_SECRET, Provider, claims, ec_key, pem, signed
from .tls_world import certificates

URL = "sasl.oauthbearer.token.endpoint.url"
SECRETS = {
    "sasl.oauthbearer.client.credentials.client.id": CLIENT_ID,
    "sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
}


def subject(token: str) -> str:
    return str(jwt.decode(token, options={"verify_signature": False})["sub"])


def test_client_credentials_come_from_settings_or_from_the_jaas_entry() -> None:
    with Provider() as provider:
        settings = {URL: provider.token_url, "sasl.oauthbearer.scope": "read write"}
        assert subject(token_retriever(settings | SECRETS, {})()) == CLIENT_ID
        options = {"clientId": CLIENT_ID, "clientSecret": CLIENT_SECRET, "scope": "x"}
        assert subject(token_retriever({URL: provider.token_url}, options)()) == CLIENT_ID
    assert [form["scope"] for form in provider.forms] == ["read write", "x"]


def test_a_wrong_secret_is_not_tried_again_and_not_shown() -> None:
    with Provider() as provider:
        wrong = SECRETS | {"sasl.oauthbearer.client.credentials.client.secret": "hidden words"}
        with pytest.raises(AuthenticationFailed, match="responded with 401") as failed:
            client_exchanges({URL: provider.token_url} | wrong, {})("host").first()
    assert "hidden" not in str(failed.value)
    assert len(provider.asked) <= 2, "once by itself, and once for the login if that came later"


def test_a_token_comes_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token.jwt"
    retrieve = token_retriever({URL: file.as_uri()}, {})
    with pytest.raises(ProviderError, match="cannot read"):
        retrieve()
    file.write_text("")
    with pytest.raises(ProviderError, match="is empty"):
        retrieve()
    file.write_text(signed(claims("bob")) + "\n")
    assert subject(retrieve()) == "bob"


def test_an_assertion_is_signed_or_read_from_a_file(tmp_path: Path) -> None:
    key, file = tmp_path / "key.pem", tmp_path / "assertion.jwt"
    key.write_bytes(pem(ec_key()))
    file.write_text(signed(claims("carol")))
    prefix = "sasl.oauthbearer.assertion"
    settings = {
        "sasl.oauthbearer.jwt.retriever.class": "org.apache.kafka.common.security.oauthbearer"
        ".JwtBearerJwtRetriever"
    }
    made = {
        f"{prefix}.private.key.file": str(key),
        f"{prefix}.algorithm": "ES256",
        f"{prefix}.claim.sub": "dave",
        f"{prefix}.claim.aud": "provider",
        f"{prefix}.claim.jti.include": "true",
    }
    with Provider() as provider:
        settings[URL] = provider.token_url
        assert subject(token_retriever(settings | made, {})()) == "dave"
        assert subject(token_retriever(settings | {f"{prefix}.file": str(file)}, {})()) == "carol"
    assertion = provider.forms[0]["assertion"]
    payload = jwt.decode(assertion, ec_key().public_key(), ["ES256"], audience="provider")
    assert payload["jti"] and payload["exp"] - payload["iat"] == 300


def test_unsigned_tokens_of_the_jaas_entry_log_in_where_they_are_taken() -> None:
    options = {
        "unsecuredLoginStringClaim_sub": "alice",
        "unsecuredLoginListClaim_scope": ",a,b",
        "unsecuredLoginNumberClaim_n": "3",
        "unsecuredLoginExtension_pool": "p1",
    }
    first = parse_first_message(client_exchanges({}, options)("host").first())
    assert first.extensions == {"pool": "p1"}
    check = token_check(
        {"sasl.server.callback.handler.class": UNSECURED_HANDLER},
        {"unsecuredValidatorRequiredScope": "a b"},
    )
    assert check(first.token).name == "alice"


@pytest.mark.parametrize(
    ("settings", "options", "problem"),
    [
        ({}, {}, "needs a token"),
        ({URL: "http://127.0.0.1:1/"}, {}, "client.secret are needed"),
        ({URL: "gopher://x"}, {}, "http, https or file"),
        ({"sasl.login.refresh.window.factor": "2"}, {"unsecuredLoginStringClaim_sub": "a"}, "window.factor"),
        ({}, {"unsecuredLoginStringClaim_x": "a"}, "lacks unsecuredLoginStringClaim_sub"),
        (
            {},
            {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginNumberClaim_n": "nan"},
            "not a finite number",
        ),
        ({}, {"unsecuredLoginStringClaim_sub": "a", "extension_auth": "x"}, "extension name"),
        ({URL: "http://127.0.0.1:1/", "sasl.oauthbearer.jwt.retriever.class": "x.Y"}, {}, "is unknown"),
    ],
)
def test_settings_that_cannot_be_used_are_named(
    settings: dict[str, str], options: dict[str, str], problem: str
) -> None:
    with pytest.raises(SecuritySettingsError, match=problem):
        client_exchanges(settings, options)


def test_a_token_is_replaced_before_it_expires() -> None:
    """The window of 0.8 of its life, but not in its last five minutes and not in its first one."""
    settings = RefreshSettings(window_jitter=0)
    assert refresh_after_s(3600, settings, 0) == 2880
    assert refresh_after_s(1000, settings, 0) == 700
    assert refresh_after_s(361, settings, 0) == 61
    assert refresh_after_s(100, settings, 0) == 80
    assert refresh_after_s(3600, RefreshSettings(), 1) == pytest.approx(3060)


def test_a_login_gets_a_new_token_by_itself() -> None:
    with Provider(life_s=2) as provider:
        retrieve = token_retriever({URL: provider.token_url} | SECRETS, {})
        login = Login(retrieve, RefreshSettings(window_factor=0.5, window_jitter=0))
        provider.failures = 1  # tried again
        login.start()
        try:
            first = login.token()
            wait_until(lambda: login.token() != first, 10)
        finally:
            login.close()


def test_a_login_goes_on_to_ask_while_its_token_holds() -> None:
    """Also a provider that refuses the client: an administrator may mend that."""
    with Provider(life_s=4) as provider:
        retrieve = token_retriever({URL: provider.token_url} | SECRETS, {})
        login = Login(retrieve, RefreshSettings(window_factor=0.5, window_jitter=0))
        login.start()
        try:
            first = login.token()
            provider.client_secret = "another one"
            asked = len(provider.asked)
            wait_until(lambda: len(provider.asked) >= asked + 2, 10)
            provider.client_secret = CLIENT_SECRET
            wait_until(lambda: login.has_token and login.token() != first, 10)
        finally:
            login.close()


def test_an_expired_token_without_a_new_one_is_an_error_that_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    tokens = [signed(claims(exp=2000))]

    def retrieve() -> str:
        if not tokens:
            raise ProviderError("http://x: no answer", may_retry=True)
        return tokens.pop()

    login = Login(retrieve, RefreshSettings(), lambda: now[0])
    assert login.renew() and login.token()
    assert not login.renew() and login.token(), "the old token stays as long as it holds"
    now[0] = 2000.0
    monkeypatch.setattr("barnabas.security.oauth.login.FIRST_TOKEN_SECONDS_MAX", 0.01)
    with pytest.raises(AuthenticationFailed, match="no answer"):
        login.token()


def test_a_secret_that_is_mended_at_the_provider_counts_at_the_next_login() -> None:
    with Provider() as provider:
        provider.client_secret = "another one"
        new_exchange = client_exchanges({URL: provider.token_url, **SECRETS}, {})
        exchange = new_exchange("host")
        assert exchange.is_slow
        with pytest.raises(AuthenticationFailed, match="401"):
            new_exchange("host").first()
        provider.client_secret = CLIENT_SECRET
        assert b"auth=Bearer" in new_exchange("host").first()
        assert not new_exchange("host").is_slow


def test_responses_of_providers_are_bounded() -> None:
    with Provider() as provider:
        with pytest.raises(ProviderError, match="more than 10 bytes"):
            request(provider.jwks_url, timeout_s=5, bytes_max=10)
        with pytest.raises(ProviderError, match="responded with 401"):
            request(f"{provider.url}/else?secret=1", timeout_s=5, bytes_max=10)


def test_a_url_is_shown_without_its_secrets() -> None:
    assert shown("https://user:secret@host:8443/a/b?key=secret#secret") == "https://host:8443/a/b"
    assert shown("file:///etc/keys.json") == "file:///etc/keys.json"


def test_a_provider_with_tls_is_trusted_by_the_options_of_the_jaas_entry() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates().broker_file)
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": certificates().ca_file}
    with Provider(tls=context) as provider:
        assert subject(token_retriever({URL: provider.token_url} | SECRETS, trust)()) == CLIENT_ID
        check = token_check({"sasl.oauthbearer.jwks.endpoint.url": provider.jwks_url}, trust)
        assert check(signed(claims(aud=None))).name == "alice"
        with pytest.raises(ProviderError, match="certificate"):
            token_retriever({URL: provider.token_url} | SECRETS, {})()


def give_token(properties: Mapping[str, str]) -> str:
    return signed(claims(properties["sasl.own"]))


def break_down(properties: Mapping[str, str]) -> str:
    raise RuntimeError("secret words")


def check_token(token: str) -> Identity:
    return Identity(subject(token))


def test_plug_ins_give_and_check_tokens() -> None:
    handler = {"sasl.login.callback.handler.class": f"{__name__}:give_token", "sasl.own": "gina"}
    first = client_exchanges(handler, {})("host").first()
    mechanism = server(
        "OAUTHBEARER", settings={"sasl.server.callback.handler.class": f"{__name__}:check_token"}
    )
    exchange = mechanism.new_exchange()
    assert mechanism.is_slow(first) and exchange.step(first) == b""
    assert exchange.identity == Identity("gina")
    broken = client_exchanges({"sasl.login.callback.handler.class": f"{__name__}:break_down"}, {})("host")
    with pytest.raises(AuthenticationFailed, match="RuntimeError") as failed:
        broken.first()
    assert "secret" not in str(failed.value)
