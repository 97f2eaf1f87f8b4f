"""Encryption of dynamic passwords before they are written to the metadata log.

In: keys, the setting and its owner, the text. Out: an encrypted text that is bound to this setting and owner.
It is a synthetic-IV construction of HMAC-SHA256: the tag over name and text is the nonce of the keystream. So
it needs no random numbers, the same secret of the same setting has the same encrypted text, and a modified
text is detected.
Does not know: where keys are stored, requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from barnabas.settings.definitions import BROKER_ROWS
from barnabas.settings.names import LISTENER_PREFIX, listener_base_name

PREFIX = "barnabas-sealed:1:"
TAG_BYTES = 16
BLOCK_BYTES = 32
ROUNDS = 4096  # the same as in Kafka's password encoder
LABEL = b"barnabas dynamic settings"


class Secrets:
    """Encrypts (`seal`) with the first key and decrypts (`open`) with any of them. `keys` is called for the
    first secret."""

    __slots__ = ("_derived", "_keys")

    def __init__(self, keys: Callable[[], Sequence[bytes]]) -> None:
        self._keys = keys
        self._derived: list[tuple[bytes, bytes]] | None = None

    def seal(self, owner: str, name: str, text: str) -> str:
        from base64 import b64encode

        tag_key, stream_key = self._pairs()[0]
        data = text.encode()
        tag = digest(tag_key, context(owner, name) + data)[:TAG_BYTES]
        return PREFIX + b64encode(tag + combined(data, keystream(stream_key, tag))).decode()

    def open(self, owner: str, name: str, sealed: str) -> str | None:
        """Decrypt a secret; None if no key fits, or if the text was modified or belongs to another
        setting."""
        from base64 import b64decode

        try:
            data = b64decode(sealed.removeprefix(PREFIX), validate=True)
        except ValueError:
            return None
        tag, hidden = data[:TAG_BYTES], data[TAG_BYTES:]
        for tag_key, stream_key in self._pairs():
            plain = combined(hidden, keystream(stream_key, tag))
            if same(tag, digest(tag_key, context(owner, name) + plain)[:TAG_BYTES]):
                return plain.decode(errors="replace")
        return None

    def opened(self, owner: str, values: Mapping[str, str]) -> Mapping[str, str]:
        """Settings with decrypted secrets, without those that cannot be decrypted."""
        if not any(text.startswith(PREFIX) for text in values.values()):
            return values
        found = {}
        for name, text in values.items():
            opened = self.open(owner, name, text) if text.startswith(PREFIX) else text
            if opened is not None:
                found[name] = opened
        return found

    def is_stale(self, owner: str, name: str, text: str) -> bool:
        """Whether a secret can be decrypted, but was not encrypted with the first key."""
        if not is_secret(name):
            return False
        plain = self.open(owner, name, text) if text.startswith(PREFIX) else text
        return plain is not None and self.seal(owner, name, plain) != text

    def _pairs(self) -> list[tuple[bytes, bytes]]:
        if self._derived is None:
            self._derived = [derived(key) for key in self._keys()]
        return self._derived


def is_secret(name: str) -> bool:
    """Whether a broker setting is a password, also with a listener prefix."""
    row = BROKER_ROWS.get(listener_base_name(name) if name.startswith(LISTENER_PREFIX) else name)
    return row is not None and row[1] == "password"


def derived(key: bytes) -> tuple[bytes, bytes]:
    from hashlib import pbkdf2_hmac

    both = pbkdf2_hmac("sha256", key, LABEL, ROUNDS, 2 * BLOCK_BYTES)
    return both[:BLOCK_BYTES], both[BLOCK_BYTES:]


def context(owner: str, name: str) -> bytes:
    """An unambiguous encoding of owner and name."""
    parts = [part.encode() for part in (owner, name)]
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def digest(key: bytes, data: bytes) -> bytes:
    import hmac

    return hmac.digest(key, data, "sha256")


def same(one: bytes, other: bytes) -> bool:
    import hmac

    return hmac.compare_digest(one, other)


def keystream(key: bytes, nonce: bytes) -> Iterator[int]:
    block = 0
    while True:
        yield from digest(key, nonce + block.to_bytes(4, "big"))
        block += 1


def combined(data: bytes, stream: Iterator[int]) -> bytes:
    return bytes(byte ^ mask for byte, mask in zip(data, stream, strict=False))
