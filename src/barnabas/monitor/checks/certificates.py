"""When the certificates of TLS listeners end.

In: addresses. Out: days left of each, with the subject. The connection verifies nothing: an expired or
self-signed certificate is what this looks for. `certificate_days` blocks: it is for threads.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime

from cryptography import x509

from barnabas.client.core.address import Address
from barnabas.monitor.alerts.rule import Finding, labels_of

CONNECT_S_MAX = 10.0
DAY_S = 86_400


def certificate_days(address: Address) -> Finding:
    """OSError if there is no TLS at the address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection((address.host, address.port), CONNECT_S_MAX) as plain,
        context.wrap_socket(plain, server_hostname=address.host) as secured,
    ):
        data = secured.getpeercert(binary_form=True)
    if data is None:
        raise OSError("the server sent no certificate")
    found = x509.load_der_x509_certificate(data)
    left = found.not_valid_after_utc - datetime.now(UTC)
    subject = found.subject.rfc4514_string()
    return Finding(left.total_seconds() / DAY_S, labels_of(address=address), subject)


async def certificates_of(addresses: Iterable[Address]) -> tuple[list[Finding], dict[Address, str]]:
    """The certificates of several listeners, and why some could not be read."""
    asked = list(addresses)
    looks = (asyncio.to_thread(certificate_days, each) for each in asked)
    found: list[Finding] = []
    failures: dict[Address, str] = {}
    for address, each in zip(asked, await asyncio.gather(*looks, return_exceptions=True), strict=True):
        if isinstance(each, OSError | ValueError):
            failures[address] = str(each) or type(each).__name__
        elif isinstance(each, BaseException):
            raise each
        else:
            found.append(each)
    return found, failures
