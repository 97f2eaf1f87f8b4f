"""Secrets at rest: passwords that are set while running, sealed before they are written to the metadata log.

In: keys, the setting and whose it is, its text. Out: text that says nothing about the secret without the key,
and gives it back with it; it fits only the setting that it was made for. A synthetic-IV construction out of
HMAC-SHA256 alone: the tag over name and text is the nonce of the keystream, so that no random number is
needed, the same secret under the same name looks the same, and a changed text is noticed.
Does not know: where keys are kept; requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from barnabas.settings.definitions import BROKER_ROWS
from barnabas.settings.names import LISTENER_PREFIX, listener_base_name

PREFIX = "barnabas-sealed:1:"
TAG_BYTES = 16
BLOCK_BYTES = 32
ROUNDS = 4096  # as Kafka's password encoder had them
LABEL = b"barnabas dynamic settings"


class Secrets:
    """The first key seals, all of them open; `keys` is asked when the first secret comes along."""

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
        """The secret; None when no key fits, or the text was changed or made for something else."""
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
        """Settings with their secrets open; those that cannot be opened are left out."""
        if not any(text.startswith(PREFIX) for text in values.values()):
            return values
        found = {}
        for name, text in values.items():
            opened = self.open(owner, name, text) if text.startswith(PREFIX) else text
            if opened is not None:
                found[name] = opened
        return found

    def is_stale(self, owner: str, name: str, text: str) -> bool:
        """Whether a secret is not sealed with the first key, and can be."""
        if not is_secret(name):
            return False
        plain = self.open(owner, name, text) if text.startswith(PREFIX) else text
        return plain is not None and self.seal(owner, name, plain) != text

    def _pairs(self) -> list[tuple[bytes, bytes]]:
        if self._derived is None:
            self._derived = [derived(key) for key in self._keys()]
        return self._derived


def is_secret(name: str) -> bool:
    """Whether a broker setting is a password, also as a listener's."""
    row = BROKER_ROWS.get(listener_base_name(name) if name.startswith(LISTENER_PREFIX) else name)
    return row is not None and row[1] == "password"


def derived(key: bytes) -> tuple[bytes, bytes]:
    from hashlib import pbkdf2_hmac

    both = pbkdf2_hmac("sha256", key, LABEL, ROUNDS, 2 * BLOCK_BYTES)
    return both[:BLOCK_BYTES], both[BLOCK_BYTES:]


def context(owner: str, name: str) -> bytes:
    """What a sealed text belongs to, unambiguously."""
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
