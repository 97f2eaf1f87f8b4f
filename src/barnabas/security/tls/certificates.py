"""Certificates for development and tests: an authority, and certificates that it issues.

In: names, host names, days. Out: keys (elliptic curve P-256) and certificates, as PEM and PKCS12. Production
certificates come from an organisation's own authority.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLOCK_SKEW = datetime.timedelta(hours=1)  # the machine of a peer may be late
DAYS = 825


@dataclass(frozen=True, slots=True, repr=False)
class Issued:
    """A key, its certificate, and the certificate of its issuer."""

    key: Any
    certificate: x509.Certificate
    issuer: x509.Certificate

    @property
    def key_pem(self) -> bytes:
        return self.encrypted_key_pem(None)

    def encrypted_key_pem(self, password: str | None) -> bytes:
        sealing = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        found: bytes = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, sealing)
        return found

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def issuer_pem(self) -> bytes:
        return self.issuer.public_bytes(Encoding.PEM)

    @property
    def chain_pem(self) -> bytes:
        own = self.certificate_pem
        return own if self.issuer == self.certificate else own + self.issuer.public_bytes(Encoding.PEM)

    def pkcs12(self, name: str, password: str) -> bytes:
        others = [] if self.issuer == self.certificate else [self.issuer]
        return pkcs12.serialize_key_and_certificates(
            name.encode(), self.key, self.certificate, others, BestAvailableEncryption(password.encode())
        )

    def trust_pkcs12(self, name: str, password: str) -> bytes:
        """The certificate alone, marked as trusted in Java's way."""
        return pkcs12.serialize_java_truststore(
            [pkcs12.PKCS12Certificate(self.certificate, name.encode())],
            BestAvailableEncryption(password.encode()),
        )


def parse_name(text: str) -> x509.Name:
    """A name as in `CN=alice,OU=clients,O=Rig`; a text without `=` is a common name."""
    if "=" not in text:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
    return x509.Name.from_rfc4514_string(text)


def new_authority(name: str, now: datetime.datetime, days: int = DAYS) -> Issued:
    """A certificate authority that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = parse_name(name)
    builder = (
        begun(subject, subject, key.public_key(), now, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=1), critical=True)
        .add_extension(usage(signs_certificates=True), critical=True)
    )
    certificate = builder.sign(key, SHA256())
    return Issued(key, certificate, certificate)


def issue(
    authority: Issued,
    name: str,
    now: datetime.datetime,
    *,
    hosts: Sequence[str] = (),
    days: int = DAYS,
) -> Issued:
    """A certificate for a broker (with the host names and addresses that it has) or a client (without)."""
    key = ec.generate_private_key(ec.SECP256R1())
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = (
        begun(parse_name(name), authority.certificate.subject, key.public_key(), now, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.certificate.public_key()),  # type: ignore[arg-type]
            critical=False,
        )
    )
    if hosts:
        purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
        names = x509.SubjectAlternativeName([alternative(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    certificate = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False).sign(
        authority.key, SHA256()
    )
    return Issued(key, certificate, authority.certificate)


def begun(
    subject: x509.Name, issuer: x509.Name, key: Any, now: datetime.datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW if days > 0 else now + datetime.timedelta(days=days - 1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def load_authority(key_pem: bytes, certificate_pem: bytes) -> Issued:
    """An authority that was written before. ValueError if it cannot be read."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    certificate = x509.load_pem_x509_certificate(certificate_pem)
    return Issued(load_pem_private_key(key_pem, None), certificate, certificate)
