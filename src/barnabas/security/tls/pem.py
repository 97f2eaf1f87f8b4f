"""PEM texts: certificates and private keys between BEGIN and END lines.

In: a text, from a file or a setting; line ends may be written as the two characters `\\n`, as in properties
files. Out: blocks, which are loaded one by one. Text around the blocks is ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_der_private_key, load_pem_private_key

BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
LINE = 64


class WrongPassword(ValueError):
    """The key is encrypted, and the password is missing or does not decrypt it."""


@dataclass(frozen=True, slots=True, repr=False)
class Block:
    label: str
    body: str

    @property
    def is_key(self) -> bool:
        return self.label.endswith("PRIVATE KEY")

    @property
    def is_certificate(self) -> bool:
        return self.label in ("CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE")

    @property
    def text(self) -> bytes:
        """The block with ordinary line ends: settings often have none, or blanks instead."""
        head, blank, rest = self.body.strip().rpartition("\n\n")  # headers of an old encrypted key
        data = "".join(rest.split())
        lines = "\n".join(data[at : at + LINE] for at in range(0, len(data), LINE))
        begin, end = f"-----BEGIN {self.label}-----\n", f"\n-----END {self.label}-----\n"
        return f"{begin}{head}{blank}{lines}{end}".encode()

    def load_certificate(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.text)

    def load_key(self, password: str | None) -> Any:
        secret = password.encode() if password else None
        is_encrypted = "ENCRYPTED" in self.label or "ENCRYPTED" in self.body
        if is_encrypted and secret is None:
            raise WrongPassword("the private key is encrypted, and no password is set; set ssl.key.password")
        try:
            return load_pem_private_key(self.text, secret if is_encrypted else None)
        except (ValueError, TypeError) as error:
            if is_encrypted:
                raise WrongPassword("it does not decrypt the private key; set the key's password") from error
            raise ValueError("it is damaged") from None


def blocks(text: str) -> list[Block]:
    if "\\n" in text:
        text = text.replace("\\r", "").replace("\\n", "\n")
    return [Block(found[1], found[2]) for found in BLOCK.finditer(text.replace("\r\n", "\n"))]


def key_of_der(data: bytes) -> Any:
    """A private key as PKCS8 DER."""
    return load_der_private_key(data, None)
