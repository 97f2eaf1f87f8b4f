"""Java's own key store format, JKS: entries with private keys or trusted certificates.

In: the bytes of a store, its password. Out: entries; certificates as DER, private keys still encrypted until
`decrypt_key`. The library that reads this format has had no release for years
(docs/decisions/0026-tls-in-user-space.md), and the format is small: only hashes are computed in here. Keys
are protected by Sun's own algorithm, which is weak: new stores should be PKCS12.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass

MAGIC, JCEKS_MAGIC = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"
PRIVATE_KEY, TRUSTED = 1, 2
WHITENER = b"Mighty Aphrodite"  # part of the format
DIGEST_BYTES = 20
SALT_BYTES = 20
ENTRIES_MAX = 100_000
# 1.3.6.1.4.1.42.2.17.1.1 in DER: Sun's key protector, the only one that JKS knows.
KEY_PROTECTOR = bytes.fromhex("060a2b060104012a02110101")


class WrongPassword(ValueError):
    """The digest of the store, or of a key, does not fit the password."""


@dataclass(frozen=True, slots=True, repr=False)
class Entry:
    alias: str
    chain: tuple[bytes, ...]  # DER; of a trusted entry the one certificate
    key: bytes | None = None  # encrypted; None: a trusted certificate


def is_jks(data: bytes) -> bool:
    return data[:4] in (MAGIC, JCEKS_MAGIC)


def entries(data: bytes, password: str | None) -> list[Entry]:
    """All entries. Without a password the store is not checked for damage, as in Java."""
    if data[:4] == JCEKS_MAGIC:
        raise ValueError("it is a JCEKS store: convert it with keytool -importkeystore to PKCS12")
    if data[:4] != MAGIC:
        raise ValueError("it does not begin as a JKS store does")
    body, digest = data[:-DIGEST_BYTES], data[-DIGEST_BYTES:]
    if password is not None:
        found = hashlib.sha1(password.encode("utf-16-be") + WHITENER + body).digest()
        if not hmac.compare_digest(found, digest):
            raise WrongPassword
    reader = Reader(body, 4)
    version, count = reader.number(), reader.number()
    if version not in (1, 2):
        raise ValueError(f"version {version} of JKS is unknown")
    if not 0 <= count <= ENTRIES_MAX:
        raise ValueError(f"it claims to hold {count} entries")
    return [reader.entry(version) for _ in range(count)]


class Reader:
    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    def entry(self, version: int) -> Entry:
        tag, alias = self.number(), self.text()
        self.bytes(8)  # when it was made
        if tag == TRUSTED:
            return Entry(alias, (self.certificate(version),))
        if tag != PRIVATE_KEY:
            raise ValueError(f"an entry of the unknown kind {tag}")
        key = self.bytes(self.number())
        count = self.number()
        if not 0 <= count <= ENTRIES_MAX:
            raise ValueError(f"a chain of {count} certificates")
        return Entry(alias, tuple(self.certificate(version) for _ in range(count)), key)

    def certificate(self, version: int) -> bytes:
        if version == 2:
            kind = self.text()
            if kind != "X.509":
                raise ValueError(f"a certificate of the unknown kind {kind}")
        return self.bytes(self.number())

    def number(self) -> int:
        found: int = struct.unpack(">i", self.bytes(4))[0]
        return found

    def text(self) -> str:
        (size,) = struct.unpack(">H", self.bytes(2))
        return self.bytes(size).decode(errors="replace")

    def bytes(self, size: int) -> bytes:
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise ValueError("it is cut off")
        start, self._position = self._position, end
        return self._data[start:end]


def decrypt_key(protected: bytes, password: str) -> bytes:
    """The PKCS8 DER of a key. The wrapping is EncryptedPrivateKeyInfo: algorithm, then an octet string."""
    at = protected.find(KEY_PROTECTOR)
    if at < 0 or at > 32:
        raise ValueError("its key is protected by an unknown algorithm")
    content = octets(protected, at + len(KEY_PROTECTOR))
    salt, hidden, digest = (
        content[:SALT_BYTES],
        content[SALT_BYTES:-DIGEST_BYTES],
        content[-DIGEST_BYTES:],
    )
    secret = password.encode("utf-16-be")
    stream, block = bytearray(), salt
    while len(stream) < len(hidden):
        block = hashlib.sha1(secret + block).digest()
        stream += block
    plain = bytes(one ^ other for one, other in zip(hidden, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + plain).digest(), digest):
        raise WrongPassword
    return plain


def octets(data: bytes, position: int) -> bytes:
    """The DER octet string at this position, after an optional NULL."""
    if data[position : position + 2] == b"\x05\x00":
        position += 2
    if data[position : position + 1] != b"\x04" or position + 2 > len(data):
        raise ValueError("its key is cut off")
    size, position = data[position + 1], position + 2
    if size & 0x80:
        length = size & 0x7F
        size, position = int.from_bytes(data[position : position + length], "big"), position + length
    content = data[position : position + size]
    if len(content) != size or size < SALT_BYTES + DIGEST_BYTES:
        raise ValueError("its key is cut off")
    return content
