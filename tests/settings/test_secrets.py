"""Secrets sealed for the metadata log."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.settings.secrets import PREFIX, Secrets, is_secret

NAME = "listener.name.outside.ssl.keystore.password"
SECRETS = Secrets(lambda: [b"a key"])


@settings(deadline=None)
@given(text=st.text(max_size=200), owner=st.sampled_from(["1", "2", ""]))
def test_an_encrypted_secret_can_be_decrypted(text: str, owner: str) -> None:
    assert SECRETS.open(owner, NAME, SECRETS.seal(owner, NAME, text)) == text


def test_the_sealed_text_does_not_show_the_secret() -> None:
    sealed = SECRETS.seal("1", NAME, "s3cret" * 20)
    assert sealed.startswith(PREFIX)
    assert "s3cret" not in sealed


def test_a_sealed_text_belongs_to_its_setting_and_owner() -> None:
    sealed = SECRETS.seal("1", NAME, "s3cret")
    assert SECRETS.open("2", NAME, sealed) is None
    assert SECRETS.open("1", "ssl.key.password", sealed) is None


@pytest.mark.parametrize("place", [0, 5, 20, -1])
def test_a_changed_text_is_noticed(place: int) -> None:
    sealed = SECRETS.seal("1", NAME, "a longer secret than most")
    body = list(sealed.removeprefix(PREFIX))
    body[place] = "A" if body[place] != "A" else "B"
    assert SECRETS.open("1", NAME, PREFIX + "".join(body)) is None


def test_another_key_opens_nothing() -> None:
    assert Secrets(lambda: [b"another"]).open("1", NAME, SECRETS.seal("1", NAME, "s3cret")) is None


def test_the_old_key_opens_and_the_new_one_seals() -> None:
    both = Secrets(lambda: [b"new", b"a key"])
    sealed = SECRETS.seal("1", NAME, "s3cret")
    assert both.open("1", NAME, sealed) == "s3cret"
    assert both.is_stale("1", NAME, sealed)
    assert not both.is_stale("1", NAME, both.seal("1", NAME, "s3cret"))


def test_an_unencrypted_secret_is_stale() -> None:
    assert SECRETS.is_stale("1", NAME, "s3cret")
    assert not SECRETS.is_stale("1", "log.segment.bytes", "5000000")


def test_settings_without_secrets_need_no_key() -> None:
    def no_key() -> list[bytes]:
        raise AssertionError("nobody should ask for the key")

    values = {"log.segment.bytes": "5000000"}
    assert Secrets(no_key).opened("1", values) is values


def test_secrets_that_cannot_be_decrypted_are_left_out() -> None:
    values = {NAME: Secrets(lambda: [b"lost"]).seal("1", NAME, "s3cret"), "log.roll.ms": "5"}
    assert SECRETS.opened("1", values) == {"log.roll.ms": "5"}


def test_passwords_are_secrets_also_of_listeners_and_mechanisms() -> None:
    assert is_secret("ssl.key.password")
    assert is_secret(NAME)
    assert is_secret("listener.name.outside.scram-sha-256.sasl.jaas.config")
    assert not is_secret("listener.name.outside.ssl.keystore.location")
