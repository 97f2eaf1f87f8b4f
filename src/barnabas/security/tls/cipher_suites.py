"""Cipher suites: Java's names, which Kafka's settings use, in OpenSSL's words.

In: a list of `ssl.cipher.suites`. Out: OpenSSL's list for TLS 1.2, and the suites for TLS 1.3, whose names
are the same on both sides. OpenSSL's own names are accepted as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

TLS13 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
JAVA_NAME = re.compile(r"(?:TLS|SSL)_(?:(\w+)_)WITH_(\w+)_(SHA\d*|MD5)")


def split_suites(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """OpenSSL's names for TLS 1.2, and the names for TLS 1.3."""
    older = [openssl_name(name) for name in names if name not in TLS13]
    return older, [name for name in names if name in TLS13]


def openssl_name(java: str) -> str:
    """`TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` is `ECDHE-RSA-AES128-GCM-SHA256`. Other names stay."""
    found = JAVA_NAME.fullmatch(java)
    if found is None:
        return java
    exchange, cipher, digest = found.groups()
    cipher = re.sub(r"(AES|CAMELLIA|ARIA)_(\d+)", r"\1\2", cipher)
    if cipher.endswith("_CBC"):
        cipher = cipher.removesuffix("_CBC")
    cipher = cipher.replace("3DES_EDE", "DES_CBC3").replace("_", "-")
    if cipher.startswith("CHACHA20-POLY1305"):
        return f"{exchange.replace('_', '-')}-{cipher}"
    prefix = "" if exchange == "RSA" else exchange.replace("_", "-") + "-"
    return f"{prefix}{cipher}-{digest}"
