"""Settings that every service over HTTP has: listeners, TLS, callers, limits.

Each row: name, type, default (`...`: must be given), allowed values, documentation. Names without `barnabas.`
are Confluent's.
"""

from types import EllipsisType

Row = tuple[str, str, "str | int | float | bool | EllipsisType | None", str, str]

# Rows keep two lines each, so that the table can be read as one.
# fmt: off
TLS: tuple[Row, ...] = (
    ("ssl.cipher.suites", "list", "", "",
     "Cipher suites that may be used; empty means the library's choice."),
    ("ssl.client.auth", "boolean", False, "",
     "Whether clients must show a certificate: the old name of ssl.client.authentication=REQUIRED."),
    ("ssl.client.authentication", "string", "NONE", "(case insensitive) [NONE, REQUESTED, REQUIRED]",
     "Whether clients show a certificate."),
    ("ssl.enabled.protocols", "list", "TLSv1.2,TLSv1.3", "",
     "TLS versions that may be used."),
    ("ssl.key.password", "password", None, "",
     "Password of the private key."),
    ("ssl.keystore.certificate.chain", "password", None, "",
     "Certificate chain in PEM, in place of a key store file."),
    ("ssl.keystore.key", "password", None, "",
     "Private key in PEM, in place of a key store file."),
    ("ssl.keystore.location", "string", None, "",
     "File with the service's key and certificates."),
    ("ssl.keystore.password", "password", None, "",
     "Password of the key store."),
    ("ssl.keystore.type", "string", "JKS", "[JKS, PKCS12, PEM]",
     "Format of the key store."),
    ("ssl.principal.mapping.rules", "string", "DEFAULT", "",
     "Rules that turn a certificate's distinguished name into a user name."),
    ("ssl.truststore.certificates", "password", None, "",
     "Trusted certificates in PEM, in place of a trust store file."),
    ("ssl.truststore.location", "string", None, "",
     "File with the certificates that clients' certificates must be signed by."),
    ("ssl.truststore.password", "password", None, "",
     "Password of the trust store."),
    ("ssl.truststore.type", "string", "JKS", "[JKS, PKCS12, PEM]",
     "Format of the trust store."),
)

CALLERS: tuple[Row, ...] = (
    ("authentication.method", "list", "NONE", "one or more of [NONE, BASIC, BEARER]",
     "How callers prove their names: BASIC, BEARER, both, or NONE. Client certificates count besides."),
    ("authentication.realm", "string", "barnabas", "",
     "The realm of Basic authentication, and the section of the JAAS file with its users."),
    ("authentication.roles", "list", "*", "",
     "Roles of which a caller must have one; * lets every known caller in."),
    ("authentication.skip.paths", "list", "", "",
     "Paths that need no name; * at the end stands for all paths that begin so."),
    ("barnabas.authentication.users.file", "string", None, "",
     "File with the users of BASIC: `name: password,role,role` a line. Passwords may be hashed."),
    ("barnabas.authentication.roles.read", "list", "", "",
     "Roles that may read only. Empty, as the two below: every role may do everything."),
    ("barnabas.authentication.roles.write", "list", "", "",
     "Roles that may read and write."),
    ("barnabas.authentication.roles.admin", "list", "", "",
     "Roles that may do everything."),
    ("oauthbearer.jwks.endpoint.url", "string", None, "",
     "Where the keys of tokens are: https, http or file."),
    ("oauthbearer.expected.audience", "list", "", "",
     "Audiences of which a token must name one."),
    ("oauthbearer.expected.issuer", "string", None, "",
     "The issuer that tokens must have."),
    ("oauthbearer.sub.claim.name", "string", "sub", "non-empty string",
     "The claim with the caller's name."),
    ("oauthbearer.scope.claim.name", "string", "scope", "non-empty string",
     "The claim whose values become the caller's roles."),
    ("oauthbearer.clock.skew.seconds", "int", 30, "[0,...,3600]",
     "How far clocks may differ."),
    ("barnabas.rate.requests.per.sec", "double", 0.0, "[0,...]",
     "Requests a second of one principal; 0 means any number."),
    ("barnabas.rate.bytes.per.sec", "double", 0.0, "[0,...]",
     "Bytes a second of the bodies of one principal; 0 means any number."),
    ("barnabas.rate.burst.seconds", "double", 10.0, "[1,...,3600]",
     "For how many seconds a principal may save what it did not use."),
)

LIMITS: tuple[Row, ...] = (
    ("access.control.allow.headers", "list", "", "",
     "Headers that scripts of other origins may send."),
    ("access.control.allow.methods", "list", "", "",
     "Methods that scripts of other origins may use; empty means GET, POST and HEAD."),
    ("access.control.allow.origin", "list", "", "",
     "Origins whose scripts may ask; * for all. Empty: none."),
    ("idle.timeout.ms", "long", 30_000, "[1,...]",
     "How long a connection may wait for its next request."),
    ("max.request.header.size", "int", 16_384, "[1024,...,1048576]",
     "Bytes of the first line and the headers of a request."),
    ("server.connection.limit", "int", 10_000, "[0,...]",
     "Connections at once; 0 means any number."),
    ("shutdown.graceful.ms", "int", 5_000, "[0,...]",
     "How long requests may take that run when the service stops."),
    ("barnabas.http.access.log", "boolean", True, "",
     "Write a line for each request to the log."),
    ("barnabas.http.body.bytes.max", "int", 10 * 1024 * 1024, "[1,...]",
     "Bytes of a body."),
    ("barnabas.http.bodies.bytes.max", "long", 512 * 1024 * 1024, "[1,...]",
     "Bytes of the bodies of all requests together; others are refused with 503."),
    ("barnabas.http.header.timeout.ms", "int", 10_000, "[1,...]",
     "How long the headers of a request may take to arrive."),
    ("barnabas.http.request.timeout.ms", "long", 60_000, "[1,...]",
     "How long a request may take, with its body."),
    ("barnabas.http.requests.max", "int", 1_000, "[1,...]",
     "Requests that run at once; others are refused with 503."),
    ("barnabas.http.streams.max", "int", 1_000, "[1,...]",
     "Streams and WebSockets that are open at once."),
    ("barnabas.http.stall.timeout.ms", "long", 60_000, "[1,...]",
     "How long the reader of a stream may take nothing."),
)
# fmt: on

SHARED: tuple[Row, ...] = (*TLS, *CALLERS, *LIMITS)
