"""Security settings of Kafka's clients under librdkafka's names.

In: `security.protocol`, `sasl.*` and `ssl.*`. Out: settings of librdkafka. It reads no JAAS text and no JKS:
users, passwords and certificates are handed over in memory. A setting that it cannot follow is an error,
because the connection would be less safe than asked for.
"""

from collections.abc import Mapping

from barnabas.cli.frame.parsing import ToolError
from barnabas.security.errors import SecuritySettingsError

SAME_NAMES = (
    "sasl.kerberos.service.name",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.scope",
)
DEFAULT_MECHANISM = "GSSAPI"


def translated(properties: Mapping[str, str]) -> dict[str, str]:
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol == "PLAINTEXT":
        return {}
    found = {"security.protocol": protocol}
    try:
        if protocol.startswith("SASL"):
            found |= sasl(properties)
        if protocol.endswith("SSL"):
            found |= tls(properties)
    except SecuritySettingsError as error:
        raise ToolError(str(error)) from None
    return found


def sasl(properties: Mapping[str, str]) -> dict[str, str]:
    from barnabas.security.sasl.jaas import parse_jaas

    mechanism = properties.get("sasl.mechanism", DEFAULT_MECHANISM).upper()
    found = {"sasl.mechanism": mechanism}
    found |= {name: properties[name] for name in SAME_NAMES if name in properties}
    text = properties.get("sasl.jaas.config")
    if text is None:
        return found
    options = parse_jaas(text).options
    if mechanism == "OAUTHBEARER":
        return found | bearer(properties, options)
    if mechanism == "GSSAPI":
        names = {"keyTab": "sasl.kerberos.keytab", "principal": "sasl.kerberos.principal"}
    else:
        names = {"username": "sasl.username", "password": "sasl.password"}
    if options.get("tokenauth", "").lower() == "true":
        raise ToolError("librdkafka cannot log in with a delegation token: give a user and a password")
    return found | {name: options[option] for option, name in names.items() if option in options}


def bearer(properties: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """Client credentials: in the JAAS entry, or in settings of their own."""
    settings = "sasl.oauthbearer.client.credentials.client."
    client_id = properties.get(f"{settings}id") or options.get("clientId")
    secret = properties.get(f"{settings}secret") or options.get("clientSecret")
    found = {"sasl.oauthbearer.method": "oidc"}
    if client_id is not None:
        found["sasl.oauthbearer.client.id"] = client_id
    if secret is not None:
        found["sasl.oauthbearer.client.secret"] = secret
    if "scope" in options:
        found["sasl.oauthbearer.scope"] = options["scope"]
    return found


def tls(properties: Mapping[str, str]) -> dict[str, str]:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    from barnabas.security.tls.cipher_suites import split_suites
    from barnabas.security.tls.contexts import tls_settings
    from barnabas.security.tls.stores import load_key_store, load_trust_store

    settings = tls_settings(properties.get)
    found = {}
    if settings.trust_store.is_set:
        trusted = load_trust_store(settings.trust_store)
        found["ssl.ca.pem"] = "".join(
            each.public_bytes(Encoding.PEM).decode() for each in trusted.certificates
        )
    if settings.key_store.is_set:
        keys = load_key_store(settings.key_store)
        private: bytes = keys.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        found["ssl.key.pem"] = private.decode()
        found["ssl.certificate.pem"] = "".join(
            each.public_bytes(Encoding.PEM).decode() for each in keys.chain
        )
    if not settings.checks_host_names:
        found["ssl.endpoint.identification.algorithm"] = "none"
    if "TLSv1.2" not in settings.protocols:
        raise ToolError("ssl.enabled.protocols: librdkafka cannot be kept from TLSv1.2; add it to the list")
    older, newer = split_suites(settings.cipher_suites)
    if newer:
        raise ToolError(f"ssl.cipher.suites: librdkafka cannot choose suites of TLS 1.3, such as {newer[0]}")
    if older:
        found["ssl.cipher.suites"] = ":".join(older)
    return found
