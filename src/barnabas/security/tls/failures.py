"""Failed handshakes in words: what failed, and how to mend it, for the log of a listener and for a client.

In: the error of a handshake. Out: one sentence. OpenSSL's names for reasons stay in it, so that people can
search for them.
"""

from __future__ import annotations

import ssl

# Codes of X509_verify_cert.
EXPIRED, NOT_YET_VALID = 10, 9
UNKNOWN_ISSUER = (2, 18, 19, 20, 21)
HOST_NAME = (62, 64)
PURPOSE = 26
OTHER_PROTOCOLS = (
    (b"GET ", "an HTTP request"),
    (b"POST", "an HTTP request"),
    (b"HEAD", "an HTTP request"),
    (b"SSH-", "SSH"),
)


def certificate_failure(error: ssl.SSLCertVerificationError, *, is_server: bool) -> str:
    peer = "client" if is_server else "broker"
    text = f"the {peer}'s certificate is refused: {error.verify_message}"
    if error.verify_code == EXPIRED:
        return f"{text}; renew it"
    if error.verify_code == NOT_YET_VALID:
        return f"{text}; compare the clocks of both machines"
    if error.verify_code in UNKNOWN_ISSUER:
        return f"{text}; add the authority that signed it to the trust store (ssl.truststore.*)"
    if error.verify_code in HOST_NAME:
        return (
            f"{text}; connect by a name in its subject alternative names, issue it for this name, or set "
            "ssl.endpoint.identification.algorithm to nothing"
        )
    if error.verify_code == PURPOSE:
        return f"{text}; issue it for {'clientAuth' if is_server else 'serverAuth'} (extended key usage)"
    return text


CLIENT_REFUSES = (
    "the client refuses our certificate; add its authority to the client's trust store, and issue it for the "
    "host names that clients use"
)
SERVER_REASONS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client shows no certificate, and ssl.client.auth=required; "
    "give it a key store (ssl.keystore.*)",
    "NO_SHARED_CIPHER": "the client offers no cipher suite that is allowed here; compare ssl.cipher.suites",
    "UNSUPPORTED_PROTOCOL": "the client offers no TLS version that is allowed here; compare "
    "ssl.enabled.protocols",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust the authority of our certificate; add it to the "
    "client's trust store",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": CLIENT_REFUSES,
    "SSLV3_ALERT_BAD_CERTIFICATE": CLIENT_REFUSES,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client says that our certificate has expired; renew it",
    "WRONG_VERSION_NUMBER": "the client sent something else than TLS in the middle of the handshake",
}
CLIENT_REASONS = {
    "WRONG_VERSION_NUMBER": "the broker's listener does not speak TLS; set security.protocol to its protocol "
    "(PLAINTEXT or SASL_PLAINTEXT), or use the port of a TLS listener",
    "RECORD_LAYER_FAILURE": "the broker's listener does not speak TLS; set security.protocol to its protocol",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the broker wants a certificate of the client; set ssl.keystore.*",
    "TLSV1_ALERT_UNKNOWN_CA": "the broker does not trust the authority of our certificate; add it to the "
    "broker's trust store",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the broker refuses our certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the broker refuses our certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "our certificate has expired; renew it",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the broker allows none of our TLS versions; compare "
    "ssl.enabled.protocols",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the broker found no common ground: it wants a certificate "
    "(ssl.keystore.*), or other cipher suites (ssl.cipher.suites)",
}


def describe(error: BaseException | str | None, *, is_server: bool) -> str:
    """One sentence about a failed handshake."""
    if error is None or isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionResetError)):
        if is_server:
            return "the client closed the connection during the TLS handshake"
        return (
            "the broker closed the connection during the TLS handshake; check that it is the port of a TLS "
            "listener, and look into the broker's log"
        )
    if isinstance(error, str):
        return error
    if isinstance(error, ssl.SSLCertVerificationError):
        return certificate_failure(error, is_server=is_server)
    if isinstance(error, ssl.SSLError):
        known = (SERVER_REASONS if is_server else CLIENT_REASONS).get(error.reason or "")
        reason = error.reason or str(error)
        return f"{known} ({reason})" if known else f"the TLS handshake failed ({reason})"
    return f"the TLS handshake failed ({error})"


def not_tls(first_bytes: bytes) -> str:
    """A peer's first bytes are no TLS."""
    for start, name in OTHER_PROTOCOLS:
        if first_bytes.startswith(start):
            return f"it sent {name} to a TLS listener; use the port of another service"
    if first_bytes[:1] == b"\0":
        return (
            "it sent a plaintext Kafka request to a TLS listener; set security.protocol=SSL (or SASL_SSL) "
            "in the client, or use the port of a PLAINTEXT listener"
        )
    return "it sent something else than TLS to a TLS listener; set security.protocol=SSL in the client"
