"""Key stores and trust stores of every format, and what is said about those that cannot be used."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.security.errors import SecuritySettingsError
from barnabas.security.tls.stores import KeyStore, StoreSettings, load_key_store, load_trust_store

from .tls_world import certificates

# Made by keytool -storetype JKS: a key with a password of its own, and a trusted certificate.
JKS_KEYS = base64.b64decode(
    "/u3+7QAAAAIAAAABAAAAAQAGYnJva2VyAAABoeWgIS0AAAB/MH0wDgYKKwYBBAEqAhEBAQUABGuleaPNDvV/SyUwZe"
    "1sizY7wxzcEE482c/noKAUL+NDqREPtfoJjEDXIdQcFbpZjZS35RqF01sJqgbMWNgvq8/lR6K3YHgOGttQbfUn+psc"
    "PqCgN7e5DEUukX9d/SD77YhJyOgaHb/Zxi49/QAAAAEABVguNTA5AAABeDCCAXQwggEaoAMCAQICCQCvqR+IBKNzrT"
    "AKBggqhkjOPQQDAjAfMQwwCgYDVQQKEwNSaWcxDzANBgNVBAMTBmJyb2tlcjAgFw0yNjExMTYxODMwMzlaGA8yMTI2"
    "MTAyMzE4MzAzOVowHzEMMAoGA1UEChMDUmlnMQ8wDQYDVQQDEwZicm9rZXIwWTATBgcqhkjOPQIBBggqhkjOPQMBBw"
    "NCAATzDiTmFbpmYoUqxNOoQQoVyTXtZgIjHtrzOB8O7EGe/6y7AAns4AO2Vdu1dxB7xPp9+wjoZm313YCQwp8rmM0p"
    "oz0wOzAdBgNVHQ4EFgQUuMGcHr+WtlnniYA3dnfDorhpqx8wGgYDVR0RBBMwEYIJbG9jYWxob3N0hwR/AAABMAoGCC"
    "qGSM49BAMCA0gAMEUCIDyx8PUW/jzLB6vlAWGbVdjkKDF6A8AK4imSR2qlWkZCAiEA7Dam/B2bdoLCab3A0dJembAp"
    "UEiItsAy6GvYkItSBmIx6WYs8YKXWtKvCeA94UR0JmkHZQ=="
)
JKS_TRUSTED = base64.b64decode(
    "/u3+7QAAAAIAAAABAAAAAgACY2EAAAGh5aAqTAAFWC41MDkAAAFbMIIBVzCB/aADAgECAggz5pC3W2rxzTAKBggqhk"
    "jOPQQDAjAfMQwwCgYDVQQKEwNSaWcxDzANBgNVBAMTBmJyb2tlcjAgFw0yNjExMTYxODMwMzlaGA8yMTI2MTAyMzE4"
    "MzAzOVowHzEMMAoGA1UEChMDUmlnMQ8wDQYDVQQDEwZicm9rZXIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATQWm"
    "Ro6tM7ityF7/W6kTQ9dt3sp+iEhUQVOIBjJk+dVE1DLRqVSc6G/0o28OgxG3Jj7RVkK4plj6jh8O94XW67oyEwHzAd"
    "BgNVHQ4EFgQU5qywANIMUcl0nEalhzw3X/bUk5UwCgYIKoZIzj0EAwIDSQAwRgIhAM3hXEXKD1K8KZZursPMQgcDPJ"
    "SdcaqMPc9+HeVUdYB0AiEAwIwwOl1/A+RTkCV0drc72cbTG503j8x/uVj4ClPOG1a9qXvBC/JgQ9IN3Y/l+3GQ/E3x"
    "Rw=="
)
PASSWORD = "storepass"


def keys(kind: str, location: object = None, **more: str | None) -> StoreSettings:
    return StoreSettings("keystore", kind, str(location) if location else None, **more)


def trusted(kind: str, location: object = None, **more: str | None) -> StoreSettings:
    return StoreSettings("truststore", kind, str(location) if location else None, **more)


def subjects(store: KeyStore) -> list[str]:
    return [each.subject.rfc4514_string() for each in store.chain]


CHAIN = ["CN=broker,O=Rig", "CN=Rig CA,O=Rig"]


def test_pem_files_hold_key_and_chain_in_any_order(tmp_path: Path) -> None:
    issued = certificates().broker
    path = tmp_path / "store.pem"
    path.write_bytes(b"a comment\n" + issued.issuer_pem + issued.certificate_pem + issued.key_pem)
    assert subjects(load_key_store(keys("PEM", path))) == CHAIN


def test_pem_in_settings_may_have_escaped_line_ends_or_none() -> None:
    issued = certificates().broker
    for end in ("\n", "\\n", " "):
        texts = {
            "key": issued.key_pem.decode().replace("\n", end),
            "certificates": issued.chain_pem.decode().replace("\n", end),
        }
        assert subjects(load_key_store(keys("PEM", **texts))) == CHAIN
    found = load_trust_store(trusted("PEM", certificates=issued.chain_pem.decode()))
    assert len(found.certificates) == 2


def test_an_encrypted_pem_key_needs_its_password() -> None:
    issued = certificates().broker
    settings = keys(
        "PEM", key=issued.encrypted_key_pem("secret").decode(), certificates=issued.chain_pem.decode()
    )
    assert subjects(load_key_store(replace(settings, key_password="secret"))) == CHAIN
    with pytest.raises(SecuritySettingsError, match=r"ssl.key.password: it does not decrypt"):
        load_key_store(replace(settings, key_password="wrong"))
    with pytest.raises(SecuritySettingsError, match=r"encrypted, and no password is set"):
        load_key_store(settings)


def test_pkcs12_is_read_whether_the_type_says_so_or_jks(tmp_path: Path) -> None:
    issued = certificates().broker
    path = tmp_path / "store.p12"
    path.write_bytes(issued.pkcs12("broker", PASSWORD))
    for kind in ("PKCS12", "JKS"):
        assert subjects(load_key_store(keys(kind, path, password=PASSWORD))) == CHAIN
    path.write_bytes(certificates().authority.trust_pkcs12("ca", PASSWORD))
    found = load_trust_store(trusted("PKCS12", path, password=PASSWORD))
    assert [each.subject.rfc4514_string() for each in found.certificates] == ["CN=Rig CA,O=Rig"]


def test_jks_stores_of_keytool_are_read(tmp_path: Path) -> None:
    path = tmp_path / "store.jks"
    path.write_bytes(JKS_KEYS)
    for kind in ("JKS", "PKCS12"):
        store = load_key_store(keys(kind, path, password=PASSWORD, key_password="keypass"))
        assert subjects(store) == ["CN=broker,O=Rig"]
    path.write_bytes(JKS_TRUSTED)
    for password in (PASSWORD, None):  # without a password Java does not check for damage
        found = load_trust_store(trusted("JKS", path, password=password))
        assert len(found.certificates) == 1


@pytest.mark.parametrize("size", range(0, len(JKS_KEYS), 7))
def test_a_jks_store_that_is_cut_off_is_refused(tmp_path: Path, size: int) -> None:
    path = tmp_path / "store.jks"
    path.write_bytes(JKS_KEYS[:size])
    for password in (PASSWORD, None):
        with pytest.raises(SecuritySettingsError):
            load_key_store(keys("JKS", path, password=password, key_password="keypass"))


@pytest.mark.parametrize(
    "data, settings, said",
    [
        (JKS_KEYS, {"password": "wrong"}, "ssl.keystore.password: it does not open"),
        (JKS_KEYS, {"password": PASSWORD, "key_password": "wrong"}, "ssl.key.password: it does not decrypt"),
        (JKS_TRUSTED, {"password": PASSWORD}, "holds no private key with a certificate"),
        (b"nonsense", {"password": PASSWORD}, "is neither PKCS12 nor JKS"),
        (b"", {}, "is empty"),
        (b"\xce\xce\xce\xce" + bytes(40), {}, "it is a JCEKS store: convert it with keytool"),
    ],
)
def test_a_store_that_cannot_be_used_is_named_with_the_remedy(
    tmp_path: Path, data: bytes, settings: dict[str, str], said: str
) -> None:
    path = tmp_path / "store"
    path.write_bytes(data)
    with pytest.raises(SecuritySettingsError, match=said) as error:
        load_key_store(keys("JKS", path, **settings))
    assert "wrong" not in str(error.value) and PASSWORD not in str(error.value)


def test_settings_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    issued = certificates().broker
    pem = {"key": issued.key_pem.decode(), "certificates": issued.chain_pem.decode()}
    cases = [
        (keys("JKS", **pem), "set it to PEM"),
        (keys("PEM", tmp_path / "x", **pem), "keep one of file and PEM in settings"),
        (keys("PEM", certificates().broker_file, password="x"), "a PEM store has no password of its own"),
        (keys("PEM", key=pem["key"]), "ssl.keystore.certificate.chain: it is not set"),
        (keys("PEM", tmp_path / "nothing"), "cannot be read: No such file"),
        (keys("BKS", tmp_path / "nothing"), "use one of JKS, PKCS12, PEM"),
        (
            keys("PEM", key=certificates().alice.key_pem.decode(), certificates=pem["certificates"]),
            "does not belong to the private key",
        ),
    ]
    for settings, said in cases:
        with pytest.raises(SecuritySettingsError, match=said):
            load_key_store(settings)
    with pytest.raises(SecuritySettingsError, match="holds no trusted certificate"):
        load_trust_store(trusted("PEM", certificates="nothing"))
