"""TLS contexts made from Kafka's settings, for listeners and for clients.

In: `TlsSettings`. Out: an `ssl.SSLContext`. Python loads a key only from a file: it gets one that exists in
memory alone, so no key is written to a disk.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barnabas.security.errors import SecuritySettingsError
from barnabas.security.tls.cipher_suites import split_suites
from barnabas.security.tls.stores import (
    KeyStore,
    StoreSettings,
    TrustStore,
    load_key_store,
    load_trust_store,
)
from barnabas.security.tls.tls13_suites import set_suites

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
DEFAULTS: Mapping[str, Any] = {
    "ssl.enabled.protocols": ("TLSv1.2", "TLSv1.3"),
    "ssl.endpoint.identification.algorithm": "https",
    "ssl.protocol": "TLSv1.3",
    "ssl.keystore.type": "JKS",
    "ssl.truststore.type": "JKS",
    "ssl.client.auth": "none",
}


@dataclass(frozen=True, slots=True, repr=False)
class TlsSettings:
    key_store: StoreSettings
    trust_store: StoreSettings
    protocols: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    checks_host_names: bool
    client_auth: str
    newest: str  # the version that a client begins with


def tls_settings(value: Callable[[str], Any]) -> TlsSettings:
    """The settings that `value` gives by Kafka's names: texts, or what a node's settings made of them."""

    def get(name: str) -> Any:
        found = value(name)
        return DEFAULTS.get(name) if found is None else found

    algorithm = get("ssl.endpoint.identification.algorithm").lower()
    if algorithm not in ("", "https"):
        raise SecuritySettingsError(
            f"ssl.endpoint.identification.algorithm: {algorithm} is unknown; use https, "
            "or leave it empty so that host names are not checked"
        )
    return TlsSettings(
        StoreSettings(
            "keystore",
            get("ssl.keystore.type"),
            get("ssl.keystore.location") or None,
            get("ssl.keystore.password"),
            get("ssl.key.password"),
            get("ssl.keystore.key") or None,
            get("ssl.keystore.certificate.chain") or None,
        ),
        StoreSettings(
            "truststore",
            get("ssl.truststore.type"),
            get("ssl.truststore.location") or None,
            get("ssl.truststore.password"),
            certificates=get("ssl.truststore.certificates") or None,
        ),
        listed(get("ssl.enabled.protocols")),
        listed(get("ssl.cipher.suites")),
        algorithm == "https",
        get("ssl.client.auth").lower(),
        newest_version(get("ssl.protocol")),
    )


def newest_version(protocol: str) -> str:
    """`ssl.protocol`: a client does not use a newer version, whatever `ssl.enabled.protocols` says."""
    if protocol not in ("TLS", *VERSIONS):
        raise SecuritySettingsError(
            f"ssl.protocol: {protocol} is not supported; use TLSv1.3, or TLSv1.2 for clients that shall not "
            "use a newer version"
        )
    return "TLSv1.3" if protocol == "TLS" else protocol


def listed(value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value or ()
    return tuple(part.strip() for part in parts if part.strip())


@dataclass(frozen=True, slots=True, repr=False)
class ServerTls:
    """TLS contexts of a listener's connections: made anew when a store changes."""

    context: ssl.SSLContext
    key_store: KeyStore
    trust_store: TrustStore | None
    suites: frozenset[str]  # of TLS 1.3 that are allowed, if OpenSSL could not be told


def server_tls(settings: TlsSettings) -> ServerTls:
    """The TLS of a listener. SecuritySettingsError says which setting is wrong and how to mend it."""
    if not settings.key_store.is_set:
        raise SecuritySettingsError(
            "ssl.keystore.location is not set: a listener with TLS needs a key and a certificate; "
            "name a store, or set ssl.keystore.key and ssl.keystore.certificate.chain "
            "(`barnabas certs` makes certificates for development)"
        )
    if settings.client_auth not in CLIENT_AUTH:
        raise SecuritySettingsError(
            f"ssl.client.auth: {settings.client_auth} is unknown; use one of {', '.join(CLIENT_AUTH)}"
        )
    keys = load_key_store(settings.key_store)
    trusted = load_trust_store(settings.trust_store) if settings.trust_store.is_set else None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    suites = restrict(context, settings)
    load_keys(context, keys)
    context.verify_mode = CLIENT_AUTH[settings.client_auth]
    if context.verify_mode != ssl.CERT_NONE:
        load_trusted(context, trusted)
    # A resumed session would outlive a change of the trust store.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_IGNORE_UNEXPECTED_EOF
    return ServerTls(context, keys, trusted, suites)


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """The TLS of a client. Without a trust store it trusts the authorities of the operating system."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    restrict(context, settings)
    if settings.newest == "TLSv1.2":
        context.maximum_version = VERSIONS["TLSv1.2"]
    context.check_hostname = settings.checks_host_names
    context.options |= ssl.OP_IGNORE_UNEXPECTED_EOF
    if settings.key_store.is_set:
        load_keys(context, load_key_store(settings.key_store))
    load_trusted(context, load_trust_store(settings.trust_store) if settings.trust_store.is_set else None)
    return context


def restrict(context: ssl.SSLContext, settings: TlsSettings) -> frozenset[str]:
    """Apply versions and cipher suites. Returns the TLS 1.3 suites to check after each handshake, if they
    cannot be set."""
    known = [name for name in settings.protocols if name in VERSIONS]
    if not known:
        raise SecuritySettingsError(
            f"ssl.enabled.protocols: none of {', '.join(settings.protocols)} is supported; "
            f"use {' or '.join(VERSIONS)}"
        )
    suites: frozenset[str] = frozenset()
    if settings.cipher_suites:
        older, newer = split_suites(settings.cipher_suites)
        if older:
            try:
                context.set_ciphers(":".join(older))
            except ssl.SSLError:
                raise SecuritySettingsError(
                    f"ssl.cipher.suites: none of {', '.join(older)} is known to {ssl.OPENSSL_VERSION}; "
                    "use names as in `openssl ciphers -stdname`"
                ) from None
        with_suites = [name for name, some in (("TLSv1.2", older), ("TLSv1.3", newer)) if some]
        known = [name for name in known if name in with_suites]
        if not known:
            raise SecuritySettingsError(
                "ssl.cipher.suites: no suite is for a version of ssl.enabled.protocols "
                f"({', '.join(settings.protocols)}); add one"
            )
        if newer and "TLSv1.3" in known and not set_suites(context, newer):
            suites = frozenset(newer)
    context.minimum_version = min(VERSIONS[name] for name in known)
    context.maximum_version = max(VERSIONS[name] for name in known)
    return suites


def load_keys(context: ssl.SSLContext, keys: KeyStore) -> None:
    with private_file(keys.to_pem()) as path:
        try:
            context.load_cert_chain(path)
        except ssl.SSLError as error:
            raise SecuritySettingsError(
                f"ssl.keystore: OpenSSL refuses the certificate or the key ({error.reason}); "
                "use RSA of 2048 bits and more, or an elliptic curve, signed with SHA-256"
            ) from None


def load_trusted(context: ssl.SSLContext, trusted: TrustStore | None) -> None:
    if trusted is None:
        context.load_default_certs()
        return
    context.load_verify_locations(cadata=trusted.to_der())
    # Java trusts every certificate of the store, not only authorities that signed themselves.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


@contextmanager
def private_file(data: bytes) -> Iterator[str]:
    """A path under which this process alone reads these bytes, until the block ends."""
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        descriptor = os.memfd_create("barnabas", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, data)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile(prefix="barnabas-") as file:  # its mode is 0600
        file.write(data)
        file.flush()
        yield file.name
