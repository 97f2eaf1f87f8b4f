"""The schema registry, as a broker asks it: under which subjects a schema is registered. For threads only.

In: the id of a schema, as records have it. Out: its subjects, and on request the names of its records; None
if the registry has no such schema. RegistryUnavailable if no registry can tell.
Only the standard library is needed: a broker parses no schema. Names are read from the schema's text.
Does not know: topics, records.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import time
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit
from uuid import UUID

from barnabas.records.schema_ids import ID_BYTES, shown
from barnabas.security.errors import SecuritySettingsError
from barnabas.security.oauth.http import ProviderError, request
from barnabas.security.tls.contexts import client_context, tls_settings
from barnabas.settings import BrokerSettings
from barnabas.settings.values import Password

TIMEOUT_S = 5.0
BYTES_MAX = 4 * 1024 * 1024
NOT_FOUND = 404
DEFAULT_CONTEXT = "."
COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.DOTALL)
PACKAGE = re.compile(r"\bpackage\s+([\w.]+)\s*;")
BRACES = re.compile(r"\bmessage\s+(\w+)\s*\{|[{}]")


class RegistryUnavailable(Exception):
    """No registry responded as it should. The message has no secret."""


class _NotFound(Exception):
    """The registry does not have what it was asked for."""


class Registered(NamedTuple):
    subjects: frozenset[str]
    names: frozenset[str]  # of its records; empty if they were not asked for


class Registry:
    """All addresses of a registry. One that does not respond is asked last the next time."""

    def __init__(self, settings: BrokerSettings) -> None:
        given = [url.rstrip("/") for url in settings["confluent.schema.registry.url"]]
        self.urls = [_without_login(url) for url in given if url]
        self._settings = settings
        self._headers = _login(settings, given)
        self._retries: int = settings["confluent.schema.registry.max.retries"]
        self._wait_s: float = settings["confluent.schema.registry.retries.wait.ms"] / 1000
        self._tls: ssl.SSLContext | None = None

    def find(self, prefix: bytes, *, with_names: bool) -> Registered | None:
        """The registration of the schema that a record's prefix names."""
        try:
            schema_id = self._id_of(prefix)
            subjects = self._list(f"/schemas/ids/{schema_id}/subjects")
            schema = self._get(f"/schemas/ids/{schema_id}") if with_names else {}
        except _NotFound:
            return None
        if not isinstance(schema, dict):
            raise RegistryUnavailable(f"the registry gave no object for {shown(prefix)}")
        return Registered(frozenset(map(str, subjects)), names_in(schema) if with_names else frozenset())

    def _id_of(self, prefix: bytes) -> int:
        if len(prefix) == ID_BYTES:
            found = int.from_bytes(prefix[1:], "big", signed=True)
            if found <= 0:
                raise _NotFound
            return found
        for entry in self._list(f"/schemas/guids/{UUID(bytes=prefix[1:])}/ids"):
            if isinstance(entry, dict) and entry.get("context", DEFAULT_CONTEXT) == DEFAULT_CONTEXT:
                return int(entry["id"])
        raise _NotFound

    def _list(self, path: str) -> list[Any]:
        found = self._get(path)
        if not isinstance(found, list):
            raise RegistryUnavailable(f"the registry gave no list at {path}")
        return found

    def _get(self, path: str) -> Any:
        """The JSON of a resource; `_NotFound` if the registry does not have it."""
        reasons = []
        for attempt in range(self._retries + 1):
            if attempt and self._wait_s:
                time.sleep(self._wait_s)
            for url in list(self.urls):
                try:
                    body = request(
                        url + path,
                        timeout_s=TIMEOUT_S,
                        bytes_max=BYTES_MAX,
                        headers=self._headers,
                        tls=self._tls_of(url),
                    )
                    return json.loads(body)
                except ProviderError as error:
                    if error.status == NOT_FOUND:
                        raise _NotFound from None
                    reasons.append(str(error))
                except (ValueError, RecursionError, SecuritySettingsError) as error:
                    reasons.append(f"{url}: {error}")
                self.urls = [*(known for known in self.urls if known != url), url]
        raise RegistryUnavailable("; ".join(dict.fromkeys(reasons)))

    def _tls_of(self, url: str) -> ssl.SSLContext | None:
        if not url.startswith("https:"):
            return None
        if self._tls is None:
            settings = self._settings

            def value(name: str) -> Any:
                found = settings.values.get(f"confluent.{name}")
                return found.value if isinstance(found, Password) else found

            self._tls = client_context(tls_settings(value))
        return self._tls


def _without_login(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise SecuritySettingsError(
            f"confluent.schema.registry.url: an address begins with http or https, not {parts.scheme!r}"
        )
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _login(settings: BrokerSettings, urls: list[str]) -> dict[str, str]:
    """The header that names the broker to the registry."""
    token: Password | None = settings["confluent.bearer.auth.token"]
    if token is not None:
        return {"Authorization": f"Bearer {token.value}"}
    given: Password | None = settings["confluent.basic.auth.user.info"]
    if settings["confluent.basic.auth.credentials.source"] == "USER_INFO":
        user_info = given.value if given is not None else ""
    else:
        found = [urlsplit(url).netloc.rpartition("@")[0] for url in urls]
        user_info = unquote(next((text for text in found if text), ""))
    if not user_info:
        return {}
    return {"Authorization": "Basic " + base64.b64encode(user_info.encode()).decode()}


# -- names of records ------------------------------------------------------------------------------


def names_in(schema: dict[str, Any]) -> frozenset[str]:
    """The names that serializers give the records of a schema: of an Avro record, a JSON title, messages."""
    text = str(schema.get("schema", ""))
    readers: dict[str, Callable[[str], set[str]]] = {"JSON": _json_title, "PROTOBUF": _messages}
    return frozenset(readers.get(str(schema.get("schemaType", "AVRO")), _avro_name)(text))


def _avro_name(text: str) -> set[str]:
    found = _object(text)
    name, namespace = found.get("name"), found.get("namespace")
    if not isinstance(name, str):
        return set()
    return {name if "." in name or not namespace else f"{namespace}.{name}"}


def _json_title(text: str) -> set[str]:
    title = _object(text).get("title")
    return {title} if isinstance(title, str) else set()


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _messages(text: str) -> set[str]:
    """Full names of all messages of a Protobuf file, nested ones too."""
    text = COMMENTS.sub(" ", text)
    package = PACKAGE.search(text)
    open_ = [package[1]] if package else []
    depth = len(open_)
    names: set[str] = set()
    for found in BRACES.finditer(text):
        if found[0] == "}":
            del open_[max(depth, len(open_) - 1) :]
        else:
            open_.append(found[1] or "")  # braces that are no message's: of an enum, a oneof, an option
            if found[1]:
                names.add(".".join(filter(None, open_)))
    return names
