"""TLS on listeners and between nodes.

Each row: name, type, default, allowed values, importance, how it can be changed, documentation.
"""

from barnabas.settings.tables.row import Row

# Rows keep two lines each, so that the table can be read as one.
# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("ssl.allow.dn.changes", "boolean", False, "", "low", "read-only",
     "Accept a reloaded certificate with another distinguished name."),
    ("ssl.allow.san.changes", "boolean", False, "", "low", "read-only",
     "Accept a reloaded certificate with other subject alternative names."),
    ("ssl.cipher.suites", "list", "", "", "medium", "per-broker",
     "Cipher suites that may be used; empty means the library's choice."),
    ("ssl.client.auth", "string", "none", "[required, requested, none]", "medium", "per-broker",
     "Whether clients show a certificate: required, requested or none."),
    ("ssl.enabled.protocols", "list", "TLSv1.2,TLSv1.3", "", "medium", "per-broker",
     "TLS versions that may be used."),
    ("ssl.endpoint.identification.algorithm", "string", "https", "", "low", "per-broker",
     "How the other side's host name is checked; empty turns the check off."),
    ("ssl.engine.factory.class", "class", None, "", "low", "per-broker",
     "Plug-in that makes TLS engines."),
    ("ssl.key.password", "password", None, "", "medium", "per-broker",
     "Password of the private key."),
    ("ssl.keymanager.algorithm", "string", "SunX509", "", "medium", "per-broker",
     "Key manager algorithm of the JVM; has no meaning here."),
    ("ssl.keystore.certificate.chain", "password", None, "", "medium", "per-broker",
     "Certificate chain in PEM, in place of a key store file."),
    ("ssl.keystore.key", "password", None, "", "medium", "per-broker",
     "Private key in PEM, in place of a key store file."),
    ("ssl.keystore.location", "string", None, "", "medium", "per-broker",
     "File with this node's key and certificates."),
    ("ssl.keystore.password", "password", None, "", "medium", "per-broker",
     "Password of the key store."),
    ("ssl.keystore.type", "string", "JKS", "", "medium", "per-broker",
     "Format of the key store: JKS, PKCS12 or PEM."),
    ("ssl.principal.mapping.rules", "string", "DEFAULT", "", "low", "read-only",
     "Rules that turn a certificate's distinguished name into a user name."),
    ("ssl.protocol", "string", "TLSv1.3", "", "medium", "per-broker",
     "TLS version to start from."),
    ("ssl.provider", "string", None, "", "medium", "per-broker",
     "Security provider of the JVM; has no meaning here."),
    ("ssl.secure.random.implementation", "string", None, "", "low", "per-broker",
     "Random number generator of the JVM; has no meaning here."),
    ("ssl.trustmanager.algorithm", "string", "PKIX", "", "medium", "per-broker",
     "Trust manager algorithm of the JVM; has no meaning here."),
    ("ssl.truststore.certificates", "password", None, "", "medium", "per-broker",
     "Trusted certificates in PEM, in place of a trust store file."),
    ("ssl.truststore.location", "string", None, "", "medium", "per-broker",
     "File with trusted certificates."),
    ("ssl.truststore.password", "password", None, "", "medium", "per-broker",
     "Password of the trust store."),
    ("ssl.truststore.type", "string", "JKS", "", "medium", "per-broker",
     "Format of the trust store: JKS, PKCS12 or PEM."),
)
# fmt: on
