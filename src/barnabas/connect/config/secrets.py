"""Secrets in settings: which names hold them, which parts of values, and texts that hide them.

A setting is secret if its definition says PASSWORD, or if its name says so. In values of other settings the
user info of addresses (`https://user:password@host`) and parts such as `password=…` are secret. References to
providers (`${file:/x:password}`) hold no secret and are shown; what they stand for is never shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from barnabas.connect.config.definition import ConfigDef
from barnabas.connect.config.types import ConfigType

HIDDEN = "[hidden]"
WORDS = (
    r"password|passwd|pwd|passphrase|secret|token|credentials?|api[._-]?key|access[._-]?key[._-]?secret"
    r"|private[._-]?key"
)
SECRET_NAME = re.compile(rf"(?i)(^|[._-])({WORDS}|jaas[._-]?config|user[._-]?info|keystore[._-]key)([._-]|$)")
# Patterns are bounded: a long text costs its length, not its square.
REFERENCE = re.compile(r"\$\{[^}:$]{0,256}:[^}$]{0,4096}\}")
USER_INFO = re.compile(
    r"([^/?#\s,@:]*:(?!\d+(?:[/?#,]|$))[^\s@]*(?:@[^/?#\s,@]*)*|[^/?#\s,@:]+)@"
)  # behind ://
CONTAINER = re.compile(r"(?i)(abfss?|wasbs?)$")  # schemes whose user info is the name of a container
SECRET_PART = re.compile(
    rf"(?i)(?:{WORDS}|signature)[\w.-]{{0,64}}\s{{0,8}}=\s{{0,8}}"
    r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^&;\s\"']+|[\"'][^&;\s]*)"
)
SECRET_FIELD = re.compile(rf"(?i)(?:{WORDS})[\w.-]{{0,64}}\"\s{{0,8}}:\s{{0,8}}\"((?:[^\"\\]|\\.)+)\"")
PARTS_MAX = 100  # of a secret that is a list
STAND_IN = "\ue000"  # a reference, while a value is searched: its own signs are no signs of an address
REDACTED_LENGTH_MIN = 4  # shorter texts are replaced only as words of their own
FRAME = re.compile(r' *File ".*", line \d+')


def is_secret(name: str, definition: ConfigDef | None = None) -> bool:
    """Whether the value of a setting must not be shown."""
    key = definition.keys.get(name) if definition is not None else None
    if key is not None:
        return key.type is ConfigType.PASSWORD
    return SECRET_NAME.search(name) is not None


def secret_spans(value: str) -> list[tuple[int, int]]:
    """Spans of secrets in a value: user info of addresses, values of `password=` and of `"password": "…"`."""
    found = list(user_infos(value))
    for pattern in (SECRET_PART, SECRET_FIELD):
        found += [match.span(1) for match in pattern.finditer(value)]
    spans: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if not is_shown(value[start:end]) and (not spans or start >= spans[-1][1]):
            spans.append((start, end))
    return spans


def user_infos(value: str) -> Iterator[tuple[int, int]]:
    """Spans of user and password in addresses."""
    at = 0
    for piece, following in pairwise(value.split("://")):
        at += len(piece) + len("://")
        match = USER_INFO.match(following)
        if match is not None and CONTAINER.search(piece) is None:
            yield at, at + match.end(1)


def is_shown(text: str) -> bool:
    """A reference, alone or behind a user, or what hides a secret already."""
    secret = text.strip("\"'").rpartition(":")[2]
    return secret in ("", STAND_IN, HIDDEN)


def hidden_parts(value: str) -> str:
    """A value whose secret parts are `[hidden]`."""
    references = REFERENCE.findall(value)
    text = REFERENCE.sub(STAND_IN, value)
    for start, end in reversed(secret_spans(text)):
        dropped = text[start:end].count(STAND_IN)
        first = text[:start].count(STAND_IN)
        del references[first : first + dropped]
        text = text[:start] + HIDDEN + text[end:]
    found = iter(references)
    return re.sub(STAND_IN, lambda _: next(found, STAND_IN), text)


def shown_value(name: str, value: str | None, definition: ConfigDef | None = None) -> str | None:
    """The value, without secrets. A value that is a reference as a whole is shown."""
    if value is None or REFERENCE.fullmatch(value):
        return value
    return HIDDEN if is_secret(name, definition) else hidden_parts(value)


def masked(config: Mapping[str, str | None], definition: ConfigDef | None = None) -> dict[str, str | None]:
    """A configuration for logs and responses."""
    return {name: shown_value(name, value, definition) for name, value in config.items()}


def restored(
    config: Mapping[str, str | None], stored: Mapping[str, str], shown: Mapping[str, str | None]
) -> dict[str, str | None]:
    """A configuration that a client sends back as it was shown: values with hidden parts are those that are
    stored."""
    return {
        name: stored.get(name, value) if value == HIDDEN or shown.get(name, "") == value else value
        for name, value in config.items()
    }


@dataclass(frozen=True, slots=True)
class Redaction:
    """Replaces the secrets of a configuration in texts. `raw` is what users may see, by setting; `found` what
    references stand for."""

    raw: Mapping[str, str]
    resolved: Mapping[str, str]
    found: Mapping[str, str]
    definition: ConfigDef | None = None

    def has_reference(self, name: str) -> bool:
        return name in self.raw and self.raw[name] != self.resolved.get(name)

    def shown(self, name: str) -> str | None:
        """The text of a setting as the user gave it, without secrets."""
        return shown_value(name, self.raw[name], self.definition)

    def text(self, text: str) -> str:
        """A message or a trace. Lines of a trace that name places in code stay as they are."""
        table = self._table()
        if not table:
            return text
        pattern = re.compile("|".join(as_pattern(each) for each in sorted(table, key=len, reverse=True)))
        lines = text.split("\n") if '  File "' in text else [text]
        return "\n".join(
            each if FRAME.match(each) else pattern.sub(lambda found: table[found[0]], each) for each in lines
        )

    def _table(self) -> dict[str, str]:
        """The text that is shown in place of each secret text."""
        table: dict[str, str] = {}
        for name, value in self.resolved.items():
            if self.has_reference(name):
                for each in forms(value):
                    table.setdefault(each, self.shown(name) or HIDDEN)
            elif is_secret(name, self.definition):
                table.update((each, HIDDEN) for each in forms(value))
            else:
                table.update((each, HIDDEN) for each in secret_parts(value))
        for value, reference in self.found.items():
            table.update((each, reference) for each in forms(value))
        return {each: shown for each, shown in table.items() if each.strip()}


def forms(secret: str) -> Iterator[str]:
    """A secret as messages write it: whole, quoted, as a list, and its parts."""
    parts = re.split(r"[,|\n]", secret, maxsplit=PARTS_MAX)
    yield from (secret, secret.strip(), repr(secret)[1:-1], ", ".join(each.strip() for each in parts))
    yield from (each.strip() for each in parts if len(each.strip()) >= REDACTED_LENGTH_MIN)
    yield from secret_parts(secret)


def secret_parts(value: str) -> Iterator[str]:
    """The secrets inside of a value: each whole, and without the user before it."""
    for start, end in secret_spans(value):
        part = value[start:end].strip("\"'")
        yield part
        yield part.rpartition(":")[2]


def as_pattern(secret: str) -> str:
    escaped = re.escape(secret)
    return escaped if len(secret) >= REDACTED_LENGTH_MIN else rf"(?<!\w){escaped}(?!\w)"
