"""Kafka's text form of ids: 22 characters of url-safe base64 without padding.

Converts between 16 bytes and text.
Does not know: how to create new ids.
"""

from __future__ import annotations

from binascii import Error, a2b_base64, b2a_base64

TEXT_LENGTH = 22
TO_URL = bytes.maketrans(b"+/", b"-_")
FROM_URL = bytes.maketrans(b"-_", b"+/")


def to_text(uuid: bytes) -> str:
    """The text of an id."""
    if len(uuid) != 16:
        raise ValueError(f"an id has 16 bytes, not {len(uuid)}")
    return b2a_base64(uuid, newline=False).translate(TO_URL)[:TEXT_LENGTH].decode()


def from_text(text: str) -> bytes:
    """Parse the text form of an id; ValueError if it is invalid."""
    try:
        uuid = a2b_base64(text.encode("ascii").translate(FROM_URL, b"+/=") + b"==")
    except (Error, UnicodeEncodeError):
        uuid = b""
    if len(uuid) != 16 or len(text) != TEXT_LENGTH:
        raise ValueError(f"{text!r} is not an id: it takes {TEXT_LENGTH} characters of url-safe base64")
    return uuid
