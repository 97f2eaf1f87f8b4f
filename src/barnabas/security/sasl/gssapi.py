"""GSSAPI: logins with Kerberos tickets (RFC 4752), on the library gssapi.

Client and server exchange tokens until both have a security context. Then the server offers security layers
and the client chooses: none, because TLS protects the connection where that is wanted.
Steps wait for the disk (key tables), the client's for the key distribution centre: run them in threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.security.errors import AuthenticationFailed, SecuritySettingsError
from barnabas.security.sasl.kerberos_names import LocalNames, parse_kerberos_name, parse_rules
from barnabas.security.sasl.mechanism import ClientExchange, Identity
from barnabas.security.sasl.mechanisms import ClientConfig, ServerConfig, ServerMechanism

MECHANISM = "GSSAPI"
NO_LAYER = 1
LAYER_HEADER_BYTES = 4  # the layer, and the largest message in three bytes: 0 without a layer
NO_LAYER_HEADER = bytes((NO_LAYER, 0, 0, 0))
ROUNDS_MAX = 10  # Kerberos needs three
INVALID_CREDENTIALS = (
    f"Authentication failed during authentication due to invalid credentials with SASL mechanism {MECHANISM}"
)


def library() -> Any:
    """The module gssapi. SecuritySettingsError if it is not installed."""
    try:
        import gssapi
    except ImportError as error:
        raise SecuritySettingsError(
            f"the SASL mechanism {MECHANISM} needs the package gssapi, which cannot be imported ({error}): "
            "install the headers of Kerberos (libkrb5-dev on Debian), then `pip install barnabas[kerberos]`"
        ) from None
    return gssapi


class GssapiServer:
    """The server's side of one login. The user's name follows from the client's principal by the rules."""

    def __init__(self, credentials: Any, names: LocalNames) -> None:
        self._gssapi = library()
        self._context = self._gssapi.SecurityContext(creds=credentials, usage="accept")
        self._context.__DEFER_STEP_ERRORS__ = False  # else an error is raised by the next step only
        self._names = names
        self._rounds = 0
        self._offered = False
        self._identity: Identity | None = None

    @property
    def identity(self) -> Identity | None:
        return self._identity

    def step(self, message: bytes) -> bytes:
        self._rounds += 1
        if self._rounds > ROUNDS_MAX or self._identity is not None:
            raise _refused(f"more than {ROUNDS_MAX} messages, or one after the last")
        try:
            if self._offered:
                self._chosen(message)
                return b""
            if not self._context.complete:
                token = self._context.step(message)
                if token or not self._context.complete:
                    return token or b""
            return self._offer()
        except self._gssapi.exceptions.GSSError as error:
            raise _refused(f"the client's Kerberos token is refused: {_text(error)}") from None

    def _offer(self) -> bytes:
        self._offered = True
        return bytes(self._context.wrap(NO_LAYER_HEADER, False).message)

    def _chosen(self, message: bytes) -> None:
        """The authorization id behind the header is not looked at, as in Kafka: clients send all kinds of
        names, and the principal of the ticket is what counts."""
        chosen = self._context.unwrap(message).message
        if len(chosen) < LAYER_HEADER_BYTES or chosen[0] != NO_LAYER:
            raise _refused("the client chose a security layer that was not offered")
        try:
            principal = parse_kerberos_name(str(self._context.initiator_name))
        except ValueError as error:
            raise _refused(str(error)) from None
        self._identity = Identity(self._names.user_of(principal))


class GssapiClient:
    """The client's side of one login at the service of a broker's host."""

    is_slow = True  # it may wait for the key distribution centre

    def __init__(self, service: str, host: str, options: Mapping[str, str]) -> None:
        self._gssapi = library()
        self._service = f"{service}@{host}"
        self._options = options
        self._context: Any = None
        self._chosen = False

    def first(self) -> bytes:
        api = self._gssapi
        try:
            self._context = api.SecurityContext(
                name=api.Name(self._service, api.NameType.hostbased_service),
                creds=client_credentials(self._options),
                mech=api.MechType.kerberos,
                flags=api.RequirementFlag.mutual_authentication | api.RequirementFlag.integrity,
                usage="initiate",
            )
            self._context.__DEFER_STEP_ERRORS__ = False
            return self._context.step() or b""
        except api.exceptions.GSSError as error:
            raise AuthenticationFailed(f"no Kerberos ticket for {self._service}: {_text(error)}") from None

    def step(self, challenge: bytes) -> bytes | None:
        try:
            if not self._context.complete:
                return self._context.step(challenge) or b""
            if self._chosen:
                return None
            return self._choose(challenge)
        except self._gssapi.exceptions.GSSError as error:
            raise AuthenticationFailed(f"{self._service} has not proved itself: {_text(error)}") from None

    def _choose(self, offer: bytes) -> bytes:
        offered = self._context.unwrap(offer).message
        if len(offered) != LAYER_HEADER_BYTES or not offered[0] & NO_LAYER:
            raise AuthenticationFailed(
                f"{self._service} insists on a security layer of its own: use TLS instead"
            )
        self._chosen = True
        authorization_id = str(self._context.initiator_name).encode()
        return bytes(self._context.wrap(NO_LAYER_HEADER + authorization_id, False).message)


def client_credentials(options: Mapping[str, str]) -> Any:
    """Credentials by the options of a JAAS entry: of a key table, or of a ticket cache. Tickets of key tables
    stay in the memory of this process, and the library replaces them when they expire."""
    api = library()
    principal = options.get("principal", "")
    name = api.Name(principal, api.NameType.kerberos_principal) if principal else None
    if is_true(options, "useKeyTab"):
        key_table = options.get("keyTab", "")
        store = {
            "ccache": f"MEMORY:barnabas-{principal}-{key_table}"
        }  # another table may be of other centres
        if key_table:
            store["client_keytab"] = key_table
        return api.Credentials(name=name, usage="initiate", store=store)
    if options.get("ticketCache"):
        return api.Credentials(name=name, usage="initiate", store={"ccache": options["ticketCache"]})
    return api.Credentials(name=name, usage="initiate")


def server_credentials(options: Mapping[str, str]) -> Any:
    """The service's own key. SecuritySettingsError if it cannot be had.

    The library keeps no cache of replayed tokens: it would sync a file for each login. A replayed token is
    of no use here, since only the owner of its session key can wrap the message that ends a login.
    """
    api = library()
    principal, key_table = options.get("principal", ""), options.get("keyTab", "")
    store = {"rcache": "none:"} | ({"keytab": key_table} if key_table else {})
    try:
        name = api.Name(principal, api.NameType.kerberos_principal) if principal else None
        return api.Credentials(name=name, usage="accept", store=store)
    except api.exceptions.GSSError as error:
        place = key_table or "the default key table"
        raise SecuritySettingsError(
            f"no key of {principal or 'any principal'} in {place}: {_text(error)}; check keyTab and principal"
            f" of the JAAS entry of {MECHANISM}"
        ) from None


def default_realm(principal: str) -> str:
    """The default realm of this machine, else that of the principal."""
    api = library()
    try:
        name = api.Name("any", api.NameType.user).canonicalize(api.MechType.kerberos)
        return parse_kerberos_name(str(name)).realm
    except (api.exceptions.GSSError, ValueError):
        return principal.rpartition("@")[2] if "@" in principal else ""


def server_mechanism(config: ServerConfig) -> ServerMechanism:
    if config.jaas is None:
        raise SecuritySettingsError(config.lacks_jaas("keyTab and principal"))
    options = config.jaas.options
    credentials = server_credentials(options)
    rules = config.settings["sasl.kerberos.principal.to.local.rules"]
    names = parse_rules(rules, default_realm(options.get("principal", "")))
    return ServerMechanism(lambda: GssapiServer(credentials, names), is_slow=lambda _: True)


def client_mechanism(config: ClientConfig) -> Callable[[str], ClientExchange]:
    library()
    options: Mapping[str, str] = config.jaas.options if config.jaas is not None else {}
    service = config.properties.get("sasl.kerberos.service.name") or options.get("serviceName", "")
    if not service:
        raise SecuritySettingsError(
            "sasl.kerberos.service.name is not set: GSSAPI needs the first part of the brokers' principals, "
            "such as kafka"
        )
    return lambda host: GssapiClient(service, host, options)


def is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "false").lower() == "true"


def _refused(reason: str) -> AuthenticationFailed:
    return AuthenticationFailed(INVALID_CREDENTIALS, reason)


def _text(error: Exception) -> str:
    """The library's messages, in one line."""
    gen = getattr(error, "gen_message", None)
    return " ".join(str(gen() if gen is not None else error).split())
