"""Key stores and trust stores: PEM, PKCS12 and JKS, from files or from the text of settings.

In: a type, a location or PEM text, passwords. Out: a `KeyStore` (key and certificate chain) or a `TrustStore`
(trusted certificates). SecuritySettingsError names the setting, the reason, and how to mend it; it never
holds a password or a key. Java reads a PKCS12 file although the type says JKS, and the reverse; so do we.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    pkcs12,
)

from barnabas.security.errors import SecuritySettingsError
from barnabas.security.tls import jks, pem

STORE_BYTES_MAX = 16 * 1024 * 1024
TYPES = ("JKS", "PKCS12", "PEM")


@dataclass(frozen=True, slots=True, repr=False)
class KeyStore:
    """A private key and its certificates, the own one first."""

    key: Any  # any private key of `cryptography`
    chain: tuple[x509.Certificate, ...]

    @property
    def certificate(self) -> x509.Certificate:
        return self.chain[0]

    def to_pem(self) -> bytes:
        """Key and chain in one text, unencrypted: never write it where others can read it."""
        key: bytes = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return key + b"".join(each.public_bytes(Encoding.PEM) for each in self.chain)


@dataclass(frozen=True, slots=True)
class TrustStore:
    certificates: tuple[x509.Certificate, ...]

    def to_pem(self) -> bytes:
        return b"".join(each.public_bytes(Encoding.PEM) for each in self.certificates)

    def to_der(self) -> bytes:
        return b"".join(each.public_bytes(Encoding.DER) for each in self.certificates)


@dataclass(frozen=True, slots=True, repr=False)
class StoreSettings:
    """The place of a store, in the words of the settings. `which` is `keystore` or `truststore`."""

    which: str
    type: str
    location: str | None = None
    password: str | None = None
    key_password: str | None = None
    key: str | None = None  # PEM text
    certificates: str | None = None  # PEM text: the chain of a key, or the trusted ones

    @property
    def is_set(self) -> bool:
        return bool(self.location or self.key or self.certificates)

    def name(self, rest: str) -> str:
        return f"ssl.{self.which}.{rest}"


def load_key_store(settings: StoreSettings) -> KeyStore:
    kind = checked_type(settings)
    if kind == "PEM":
        store = pem_key_store(settings)
    else:
        data = read(settings)
        from_data = jks_key_store if jks.is_jks(data) else pkcs12_key_store
        store = from_data(settings, data)
    check_key_fits(settings, store)
    return store


def load_trust_store(settings: StoreSettings) -> TrustStore:
    kind = checked_type(settings)
    if kind == "PEM":
        where = settings.location or settings.name("certificates")
        if settings.location:
            refuse_store_password(settings)
            text = read(settings).decode(errors="replace")
        else:
            text = settings.certificates or ""
        found = certificates_of(settings, pem.blocks(text), where)
    else:
        data = read(settings)
        if jks.is_jks(data):
            entries = parsed_jks(settings, data)
            found = parsed(settings, (der for each in entries if each.key is None for der in each.chain))
        else:
            bundle = parsed_pkcs12(settings, data)
            found = tuple(each.certificate for each in bundle.additional_certs)
            if bundle.cert is not None and bundle.key is None:
                found = (bundle.cert.certificate, *found)
    if not found:
        raise wrong(
            settings,
            "location",
            f"{settings.location or 'the setting'} holds no trusted certificate",
            "add the certificate of the authority that signed the peers' certificates",
        )
    return TrustStore(found)


# -- PEM -----------------------------------------------------------------------------------------


def pem_key_store(settings: StoreSettings) -> KeyStore:
    if settings.location:
        refuse_store_password(settings)
        blocks = pem.blocks(read(settings).decode(errors="replace"))
        where = settings.location
    else:
        if not settings.key or not settings.certificates:
            missing = "key" if not settings.key else "certificate.chain"
            raise wrong(
                settings, missing, "it is not set", "set ssl.keystore.key and ssl.keystore.certificate.chain"
            )
        blocks = [*pem.blocks(settings.key), *pem.blocks(settings.certificates)]
        where = settings.name("key")
    keys = [each for each in blocks if each.is_key]
    if not keys:
        raise wrong(
            settings,
            "location" if settings.location else "key",
            f"{where} holds no private key",
            "put the key (BEGIN PRIVATE KEY) and the certificate chain into it",
        )
    try:
        key = keys[0].load_key(settings.key_password)
    except pem.WrongPassword as error:
        raise SecuritySettingsError(f"ssl.key.password: {error} (the key in {where})") from None
    except (ValueError, UnsupportedAlgorithm) as error:
        raise wrong(
            settings, "key", f"the private key in {where} cannot be read ({error})", "write it as PKCS8"
        ) from None
    chain = certificates_of(settings, blocks, where)
    if not chain:
        raise wrong(
            settings,
            "location" if settings.location else "certificate.chain",
            f"{where} holds no certificate",
            "put the certificate chain (BEGIN CERTIFICATE) behind the key",
        )
    return KeyStore(key, ordered(key, chain))


def certificates_of(
    settings: StoreSettings, blocks: Iterable[pem.Block], where: str
) -> tuple[x509.Certificate, ...]:
    try:
        return tuple(each.load_certificate() for each in blocks if each.is_certificate)
    except ValueError as error:
        raise wrong(
            settings,
            "location" if settings.location else "certificates",
            f"a certificate in {where} cannot be read ({error})",
            "check that the file was copied whole",
        ) from None


def refuse_store_password(settings: StoreSettings) -> None:
    if settings.password:
        raise wrong(
            settings,
            "password",
            "a PEM store has no password of its own",
            "remove it; ssl.key.password decrypts the key",
        )


# -- PKCS12 and JKS ------------------------------------------------------------------------------


def parsed_pkcs12(settings: StoreSettings, data: bytes) -> pkcs12.PKCS12KeyAndCertificates:
    password = settings.password.encode() if settings.password else None
    try:
        return pkcs12.load_pkcs12(data, password)
    except UnsupportedAlgorithm as error:
        raise wrong(
            settings,
            "location",
            f"{settings.location} uses an encryption that is not supported ({error})",
            "write it anew with today's keytool or openssl",
        ) from None
    except ValueError as error:
        if "password" in str(error).lower() or "mac" in str(error).lower():
            raise wrong(
                settings,
                "password",
                f"it does not open {settings.location}",
                "set the password that the store was made with",
            ) from None
        raise wrong(
            settings,
            "location",
            f"{settings.location} is neither PKCS12 nor JKS ({error})",
            f"set {settings.name('type')} to the format of the file: {', '.join(TYPES)}",
        ) from None


def pkcs12_key_store(settings: StoreSettings, data: bytes) -> KeyStore:
    bundle = parsed_pkcs12(settings, data)
    if bundle.key is None or bundle.cert is None:
        raise wrong(
            settings, "location", f"{settings.location} holds no private key with a certificate", "add them"
        )
    others = tuple(each.certificate for each in bundle.additional_certs)
    return KeyStore(bundle.key, ordered(bundle.key, (bundle.cert.certificate, *others)))


def parsed_jks(settings: StoreSettings, data: bytes) -> list[jks.Entry]:
    try:
        return jks.entries(data, settings.password)
    except jks.WrongPassword:
        raise wrong(
            settings,
            "password",
            f"it does not open {settings.location}",
            "set the password that the store was made with",
        ) from None
    except ValueError as error:
        raise wrong(
            settings, "location", f"{settings.location} cannot be read as JKS ({error})", "make it anew"
        ) from None


def jks_key_store(settings: StoreSettings, data: bytes) -> KeyStore:
    for entry in parsed_jks(settings, data):
        if entry.key is None:
            continue
        password = settings.key_password or settings.password or ""
        try:
            key = pem.key_of_der(jks.decrypt_key(entry.key, password))
        except jks.WrongPassword:
            raise SecuritySettingsError(
                f"ssl.key.password: it does not decrypt the key {entry.alias!r} in {settings.location}; "
                "set the password of the key (ssl.keystore.password is used where it is not set)"
            ) from None
        except (ValueError, UnsupportedAlgorithm) as error:
            raise wrong(
                settings, "location", f"the key in {settings.location} cannot be read ({error})", "renew it"
            ) from None
        return KeyStore(key, ordered(key, parsed(settings, entry.chain)))
    raise wrong(
        settings, "location", f"{settings.location} holds no private key with a certificate", "add them"
    )


def parsed(settings: StoreSettings, ders: Iterable[bytes]) -> tuple[x509.Certificate, ...]:
    try:
        return tuple(x509.load_der_x509_certificate(der) for der in ders)
    except ValueError as error:
        raise wrong(
            settings, "location", f"a certificate in {settings.location} cannot be read ({error})", "renew it"
        ) from None


# -- shared --------------------------------------------------------------------------------------


def checked_type(settings: StoreSettings) -> str:
    kind = settings.type.upper()
    if kind not in TYPES:
        raise wrong(settings, "type", f"{settings.type} is unknown", f"use one of {', '.join(TYPES)}")
    in_settings = settings.key or settings.certificates
    if in_settings and kind != "PEM":
        raise wrong(
            settings, "type", f"{kind} stores are files", "set it to PEM for certificates in the settings"
        )
    if in_settings and settings.location:
        raise wrong(
            settings, "location", "the store is in the settings too", "keep one of file and PEM in settings"
        )
    if not in_settings and not settings.location:
        raise wrong(settings, "location", "it is not set", "name the file with the store")
    return kind


def read(settings: StoreSettings) -> bytes:
    path = settings.location
    if path is None:
        raise wrong(settings, "location", "it is not set", "name the file with the store")
    try:
        with Path(path).open("rb") as file:
            data = file.read(STORE_BYTES_MAX + 1)
    except OSError as error:
        raise wrong(
            settings,
            "location",
            f"{path} cannot be read: {error.strerror}",
            "check the path and the rights of the file",
        ) from None
    if len(data) > STORE_BYTES_MAX:
        raise wrong(settings, "location", f"{path} is larger than {STORE_BYTES_MAX} bytes", "name a store")
    if not data:
        raise wrong(settings, "location", f"{path} is empty", "write the store anew")
    return data


def ordered(key: Any, certificates: Sequence[x509.Certificate]) -> tuple[x509.Certificate, ...]:
    """The chain of the key, each certificate followed by that of its issuer. Others are left out."""
    own = public_bytes(key.public_key())
    first = next((each for each in certificates if public_bytes(each.public_key()) == own), None)
    if first is None:
        return tuple(certificates)  # `check_key_fits` refuses it
    chain = [first]
    rest = [each for each in certificates if each is not first]
    while chain[-1].issuer != chain[-1].subject:
        issuer = next((each for each in rest if each.subject == chain[-1].issuer), None)
        if issuer is None:
            break
        rest.remove(issuer)
        chain.append(issuer)
    return tuple(chain)


def check_key_fits(settings: StoreSettings, store: KeyStore) -> None:
    if public_bytes(store.key.public_key()) != public_bytes(store.certificate.public_key()):
        raise wrong(
            settings,
            "location" if settings.location else "certificate.chain",
            "the certificate does not belong to the private key",
            "put the certificate of this key first",
        )


def public_bytes(key: Any) -> bytes:
    found: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return found


def wrong(settings: StoreSettings, rest: str, reason: str, mend: str) -> SecuritySettingsError:
    return SecuritySettingsError(f"{settings.name(rest)}: {reason}; {mend}")
