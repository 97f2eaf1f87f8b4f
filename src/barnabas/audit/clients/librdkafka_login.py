"""The login of a confluent-kafka client, so that its counter reaches the brokers as the client does.

In: the configuration of a client in librdkafka's names. Out: the security of a client of ours: the same
mechanism, the same users and certificates. A setting that it cannot follow is an error, because counts would
travel less safely than the records. Does not know: counts.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from barnabas.audit.clients.token_login import token_security
from barnabas.security.clients.client_security import ClientSecurity, client_security
from barnabas.security.errors import SecuritySettingsError
from barnabas.security.sasl.jaas import JaasEntry

BEARER = "OAUTHBEARER"
MECHANISM_DEFAULT = "GSSAPI"
CREDENTIALS = "sasl.oauthbearer.client.credentials.client"
SAME_NAMES = (
    "sasl.kerberos.service.name",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.scope",
)
# Names of librdkafka, and Kafka's: each value is taken over as it is.
NAMES = {
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
    "ssl.key.password": "ssl.key.password",
    "ssl.keystore.location": "ssl.keystore.location",
    "ssl.keystore.password": "ssl.keystore.password",
    "sasl.oauthbearer.client.id": f"{CREDENTIALS}.id",
    "sasl.oauthbearer.client.secret": f"{CREDENTIALS}.secret",
}


def login_of(config: Mapping[str, Any]) -> ClientSecurity | None:
    """The security of our connections for this client; None if it has none. SecuritySettingsError."""
    protocol = str(config.get("security.protocol") or "plaintext").upper()
    if protocol == "PLAINTEXT":
        return None
    properties = {"security.protocol": protocol, **same_values(config), **certificates(config)}
    if not protocol.startswith("SASL"):
        return with_checks(client_security(properties), config)
    mechanism = str(config.get("sasl.mechanism") or config.get("sasl.mechanisms") or MECHANISM_DEFAULT)
    callback = config.get("oauth_cb")
    if mechanism == BEARER and callback is not None and config.get("sasl.oauthbearer.method") != "oidc":
        text = str(config.get("sasl.oauthbearer.config") or "")
        return with_checks(token_security(properties, lambda: callback(text)), config)
    properties["sasl.mechanism"] = mechanism
    jaas = JaasEntry("librdkafka", login_options(mechanism, config))
    return with_checks(client_security(properties, jaas), config)


def same_values(config: Mapping[str, Any]) -> dict[str, str]:
    names = {**NAMES, **{name: name for name in SAME_NAMES}}
    found = {kafkas: str(config[name]) for name, kafkas in names.items() if config.get(name)}
    algorithm = config.get("ssl.endpoint.identification.algorithm")
    if algorithm is not None:
        found["ssl.endpoint.identification.algorithm"] = "" if algorithm == "none" else str(algorithm)
    return found


def certificates(config: Mapping[str, Any]) -> dict[str, str]:
    """Kinds of stores, and the texts of a key and its certificates that lie in two files."""
    found = {"ssl.truststore.type": "PEM"}
    if config.get("ssl.keystore.location"):
        found["ssl.keystore.type"] = "PKCS12"
        return found
    for name, kafkas in (
        ("ssl.certificate.location", "ssl.keystore.certificate.chain"),
        ("ssl.key.location", "ssl.keystore.key"),
    ):
        if config.get(name):
            found[kafkas] = text_of(name, str(config[name]))
    if "ssl.keystore.key" in found or config.get("ssl.key.pem"):
        found["ssl.keystore.type"] = "PEM"
    return found


def text_of(name: str, path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or "it is no text file"
        raise SecuritySettingsError(f"{name}: {path} cannot be read: {reason}") from None


def login_options(mechanism: str, config: Mapping[str, Any]) -> dict[str, str]:
    """The options that a JAAS entry would have."""
    if mechanism == MECHANISM_DEFAULT:
        names = {"keyTab": "sasl.kerberos.keytab", "principal": "sasl.kerberos.principal"}
        key_table = {"useKeyTab": "true"} if config.get("sasl.kerberos.keytab") else {}
        return key_table | {option: str(config[name]) for option, name in names.items() if config.get(name)}
    if mechanism == BEARER:
        return {}
    names = {"username": "sasl.username", "password": "sasl.password"}
    return {option: str(config[name]) for option, name in names.items() if config.get(name) is not None}


def with_checks(security: ClientSecurity, config: Mapping[str, Any]) -> ClientSecurity:
    """Apply to our context what librdkafka was told of certificates and ciphers."""
    if security.tls is None:
        return security
    if str(config.get("enable.ssl.certificate.verification", True)).lower() in ("false", "0"):
        security.tls.check_hostname = False
        security.tls.verify_mode = ssl.CERT_NONE
    if config.get("ssl.cipher.suites"):
        try:
            security.tls.set_ciphers(str(config["ssl.cipher.suites"]))
        except ssl.SSLError as error:
            raise SecuritySettingsError(f"ssl.cipher.suites: OpenSSL refuses them ({error})") from None
    return security
