"""Logins at HDFS with Kerberos over HTTP (SPNEGO, RFC 4559), for httpx.

In: a principal and its key table, or the ticket cache of the process. Out: an answer to each `401 Negotiate`.
The server's cookie spares the next logins. RetriableError while no key distribution centre can be reached,
ConnectError where it refuses. Does not know: paths, files.
"""

from __future__ import annotations

import base64
import os
import socket
from collections.abc import Generator
from typing import Any

import httpx

from barnabas.connect.plugins import ConnectError, RetriableError
from barnabas.security.errors import SecuritySettingsError
from barnabas.security.sasl.gssapi import client_credentials, library

SPNEGO = "1.3.6.1.5.5.2"
SCHEME = "negotiate"
AWAY = ("Cannot contact any KDC", "Cannot find KDC")  # SPNEGO hides the codes of these errors


class Negotiate(httpx.Auth):
    """Logs in as one principal wherever a server asks for it."""

    def __init__(self, principal: str, key_table: str) -> None:
        try:
            self._api = library()
        except SecuritySettingsError as error:
            raise ConnectError(f"hdfs.authentication.kerberos: {error}") from None
        if key_table and not os.access(key_table, os.R_OK):
            raise ConnectError(f"connect.hdfs.keytab: {key_table} cannot be read")
        if key_table and not principal:
            raise ConnectError("connect.hdfs.principal is needed: it names the key in connect.hdfs.keytab")
        self._principal = principal.replace("_HOST", socket.getfqdn().lower())
        self._options = {"principal": self._principal}
        if key_table:
            self._options |= {"useKeyTab": "true", "keyTab": key_table}

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        answer = yield request
        if answer.status_code != 401 or challenge(answer) is None:
            return
        service = f"HTTP@{request.url.host}"
        context = self._context(service)
        request.headers["authorization"] = f"Negotiate {self._next(context, None, service)}"
        answer = yield request
        proof = challenge(answer)
        if answer.status_code != 401 and proof:
            self._next(context, base64.b64decode(proof), service)

    def _context(self, service: str) -> Any:
        api = self._api
        try:
            context = api.SecurityContext(
                name=api.Name(service, api.NameType.hostbased_service),
                creds=client_credentials(self._options),
                mech=api.OID.from_int_seq(SPNEGO),
                flags=api.RequirementFlag.mutual_authentication,
                usage="initiate",
            )
        except api.exceptions.GSSError as error:
            raise self._failure(
                f"log in as {self._principal or 'the owner of the ticket cache'}", error
            ) from error
        context.__DEFER_STEP_ERRORS__ = False
        return context

    def _next(self, context: Any, token: bytes | None, service: str) -> str:
        try:
            return base64.b64encode(context.step(token) or b"").decode()
        except self._api.exceptions.GSSError as error:
            raise self._failure(
                f"get a ticket for {service}" if token is None else f"prove {service}", error
            ) from error

    def _failure(self, what: str, error: Any) -> ConnectError:
        text = f"Kerberos cannot {what}: {' '.join(str(error.gen_message()).split())}"
        return RetriableError(text) if any(each in text for each in AWAY) else ConnectError(text)


def challenge(answer: httpx.Response) -> str | None:
    """The token behind `Negotiate`, empty for a bare one; None where the server asks for something else."""
    for each in answer.headers.get_list("www-authenticate", split_commas=True):
        scheme, _, token = each.strip().partition(" ")
        if scheme.lower() == SCHEME:
            return token.strip()
    return None
