"""May a new key store take the place of the one in use? And does a node trust its own certificate?

In: the stores before and after, settings. Raises SecuritySettingsError with the reason. As in Kafka: a new
certificate has the same subject and at least the same subject alternative names, unless
`ssl.allow.dn.changes` or `ssl.allow.san.changes` say otherwise.
"""

from __future__ import annotations

import ssl
from dataclasses import replace
from typing import TYPE_CHECKING

from cryptography import x509

from barnabas.security.errors import SecuritySettingsError
from barnabas.security.tls.contexts import ServerTls, TlsSettings, client_context
from barnabas.security.tls.distinguished_names import subject_name
from barnabas.security.tls.failures import describe

if TYPE_CHECKING:
    from barnabas.security.tls.stores import KeyStore

STEPS_MAX = 10  # of a handshake; four are enough


def check_replacement(before: KeyStore, after: KeyStore, *, allow_dn: bool, allow_san: bool) -> None:
    old, new = before.certificate, after.certificate
    if old.subject != new.subject and not allow_dn:
        raise SecuritySettingsError(
            f"the new certificate's subject is {subject_name(new)}, and that in use has {subject_name(old)}; "
            "issue it for the same subject, or set ssl.allow.dn.changes=true in the node's file"
        )
    missing = sorted(alternative_names(old) - alternative_names(new))
    if missing and not allow_san:
        raise SecuritySettingsError(
            f"the new certificate lacks subject alternative names of that in use: {', '.join(missing)}; "
            "issue it with them, or set ssl.allow.san.changes=true in the node's file"
        )


def alternative_names(certificate: x509.Certificate) -> set[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return set()
    return {f"{type(each).__name__}:{each.value}" for each in found.value}


def check_own_trust(server: ServerTls, settings: TlsSettings) -> None:
    """Connect a client with the same stores to the server, in memory: other nodes have to do the same."""
    client = client_context(replace(settings, checks_host_names=False))
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        server.context.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server),
    ]
    try:
        for _ in range(STEPS_MAX):
            for side in list(sides):
                try:
                    side.do_handshake()
                    sides.remove(side)
                except ssl.SSLWantReadError:
                    pass
            if not sides:
                return
    except ssl.SSLError as error:
        raise SecuritySettingsError(
            "this node's own trust store refuses its certificate, and other nodes would do the same: "
            f"{describe(error, is_server=False)}"
        ) from None
    raise SecuritySettingsError("the TLS handshake of this node with itself does not end")
