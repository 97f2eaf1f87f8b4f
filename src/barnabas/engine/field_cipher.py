"""Encrypted and tokenised fields: text in, text out, and back with the same key.

Encrypting (AES-256-GCM) gives another text every time, so nobody sees which values are equal. Tokenising
(AES-256-SIV) gives equal texts for equal values: keys and joins still work. Only the key undoes both.
A protected text names the kind and the key, as in `enc1.3f2a9c01.…`. Does not know: tables, Spark.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV

KEY_BYTES = 32
NONCE_BYTES = 12
ENCRYPTED, TOKEN = "enc1", "tok1"
PROTECTED = re.compile(rf"\b({ENCRYPTED}|{TOKEN})\.([0-9a-f]{{8}})\.([A-Za-z0-9_-]+)")
HOW_TO_MAKE = "make one with `barnabas pipeline key`"


class KeyProblem(ValueError):
    """A key cannot be used, or is not the one of a text. The message holds no key."""


class FieldCipher:
    """Protects texts with one key; `repr` shows which, not what."""

    def __init__(self, key: str) -> None:
        self._key = key_bytes(key)
        self.key_id = hashlib.sha256(b"barnabas field key id" + self._key).hexdigest()[:8]
        self._gcm: AESGCM | None = None
        self._siv: AESSIV | None = None

    def __repr__(self) -> str:
        return f"FieldCipher(key_id={self.key_id!r})"

    def __getstate__(self) -> bytes:
        return self._key  # the ciphers themselves cannot be pickled

    def __setstate__(self, key: bytes) -> None:
        self.__init__(base64.b64encode(key).decode())  # type: ignore[misc]

    def encrypt(self, text: str) -> str:
        nonce = os.urandom(NONCE_BYTES)
        return self._protected(ENCRYPTED, nonce + self._random().encrypt(nonce, text.encode(), None))

    def tokenise(self, text: str) -> str:
        # SIV takes no empty text, so a byte stands in front of every text.
        return self._protected(TOKEN, self._equal().encrypt(b"\x00" + text.encode(), None))

    def decrypt(self, text: str) -> str:
        """The text that was encrypted or tokenised. KeyProblem if it was not, or with another key."""
        match = PROTECTED.fullmatch(text)
        if match is None:
            raise KeyProblem("this is no encrypted or tokenised text")
        return self._opened(match)

    def decrypt_all(self, text: str) -> str:
        """The text with every protected part of this key decrypted; parts of other keys stay."""
        return PROTECTED.sub(lambda match: self._opened(match) if match[2] == self.key_id else match[0], text)

    def _opened(self, match: re.Match[str]) -> str:
        from cryptography.exceptions import InvalidTag

        kind, key_id, body = match.groups()
        if key_id != self.key_id:
            raise KeyProblem(f"the text was made with key {key_id}, this is key {self.key_id}")
        try:
            data = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
            if kind == ENCRYPTED:
                return self._random().decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], None).decode()
            return self._equal().decrypt(data, None)[1:].decode()
        except (InvalidTag, ValueError):
            raise KeyProblem("the text was changed after it was made") from None

    def _protected(self, kind: str, data: bytes) -> str:
        return f"{kind}.{self.key_id}.{base64.urlsafe_b64encode(data).decode().rstrip('=')}"

    def _random(self) -> AESGCM:
        if self._gcm is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            self._gcm = AESGCM(derived(self._key, b"encrypt", 32))
        return self._gcm

    def _equal(self) -> AESSIV:
        if self._siv is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESSIV

            self._siv = AESSIV(derived(self._key, b"tokenise", 64))
        return self._siv


def new_key() -> str:
    return base64.b64encode(os.urandom(KEY_BYTES)).decode()


def key_bytes(text: str) -> bytes:
    """32 bytes as base64 or hexadecimal digits."""
    given = text.strip()
    try:
        found = (
            bytes.fromhex(given) if len(given) == 2 * KEY_BYTES else base64.b64decode(given, validate=True)
        )
    except (ValueError, binascii.Error):
        found = b""
    if len(found) != KEY_BYTES:
        raise KeyProblem(f"the key must be {KEY_BYTES} bytes in base64: {HOW_TO_MAKE}")
    return found


def derived(key: bytes, purpose: bytes, size: int) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), size, None, b"barnabas fields " + purpose).derive(key)
