"""Users of Basic authentication: names, passwords and roles from a file.

In: the text of a file with `name: password,role,role` a line, the format of Jetty's PropertyFileLoginModule.
A password is plain text, `MD5:<hex>` as Jetty writes it, or `PBKDF2:<iterations>:<salt>:<hash>`, which
`hashed_password` makes. Out: `Users`. Only digests are kept. Unknown names cost as much as wrong passwords.
Does not know: HTTP, where the file is.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.security.errors import SecuritySettingsError
from barnabas.settings.properties import parse

ITERATIONS = 210_000
ITERATIONS_MAX = 2_000_000
PROVEN_MAX = 10_000
MD5, PBKDF2 = "MD5:", "PBKDF2:"


@dataclass(frozen=True, slots=True)
class User:
    check: PasswordCheck = field(repr=False)
    roles: frozenset[str]


@dataclass(frozen=True, slots=True)
class PasswordCheck:
    """`iterations` 0: a single digest of the kind of its salt's key."""

    digest: bytes
    salt: bytes
    iterations: int = 0
    is_md5: bool = False

    @property
    def is_slow(self) -> bool:
        return self.iterations > 0

    def matches(self, password: str) -> bool:
        data = password.encode()
        if self.iterations:
            found = hashlib.pbkdf2_hmac("sha256", data, self.salt, self.iterations)
        elif self.is_md5:
            found = hashlib.md5(data, usedforsecurity=False).digest()
        else:
            found = hmac.digest(self.salt, data, "sha256")
        return hmac.compare_digest(found, self.digest)


class Users:
    """Passwords that were proven are remembered by a keyed digest, so that a slow hash costs once."""

    def __init__(self, users: Mapping[str, User]) -> None:
        self._users = dict(users)
        self._key = os.urandom(32)
        self._proven: OrderedDict[bytes, None] = OrderedDict()
        slow = max((each.check.iterations for each in users.values()), default=0)
        self._nobody = PasswordCheck(os.urandom(32), os.urandom(16), slow)

    def __contains__(self, name: str) -> bool:
        return name in self._users

    def is_slow(self, name: str, password: str) -> bool:
        """Whether `roles_of` would compute long: then it is called in a thread."""
        check = self._users[name].check if name in self._users else self._nobody
        return check.is_slow and self._mark(name, password) not in self._proven

    def roles_of(self, name: str, password: str) -> frozenset[str] | None:
        """The roles of a user; None if the name or the password is wrong."""
        user = self._users.get(name)
        mark = self._mark(name, password)
        if user is not None and mark in self._proven:
            return user.roles
        if not (user.check if user is not None else self._nobody).matches(password) or user is None:
            return None
        if user.check.is_slow:
            self._proven[mark] = None
            if len(self._proven) > PROVEN_MAX:
                self._proven.popitem(last=False)
        return user.roles

    def _mark(self, name: str, password: str) -> bytes:
        return hmac.digest(self._key, f"{len(name)}:{name}{password}".encode(), "sha256")


def parse_users(text: str) -> Users:
    """SecuritySettingsError names the user whose line is wrong, never a password."""
    found = {}
    for name, line in parse(text).items():
        password, *roles = (part.strip() for part in line.split(","))
        if not name or not password:
            raise SecuritySettingsError(f"the user {name!r} has no password: write `name: password,role`")
        found[name] = User(parse_password(name, password), frozenset(role for role in roles if role))
    return Users(found)


def parse_password(name: str, text: str) -> PasswordCheck:
    try:
        if text.startswith(MD5):
            return PasswordCheck(bytes.fromhex(text.removeprefix(MD5)), b"", is_md5=True)
        if text.startswith(PBKDF2):
            iterations, salt, digest = text.removeprefix(PBKDF2).split(":")
            if not 0 < int(iterations) <= ITERATIONS_MAX:
                raise ValueError
            return PasswordCheck(
                b64decode(digest, validate=True), b64decode(salt, validate=True), int(iterations)
            )
    except ValueError:
        raise SecuritySettingsError(
            f"the password of {name!r} is no hash: write MD5:<hex> or PBKDF2:<iterations>:<salt>:<hash>"
        ) from None
    if text.startswith(("OBF:", "CRYPT:")):
        raise SecuritySettingsError(
            f"the password of {name!r} has the form {text.partition(':')[0]}:, which is not supported"
        )
    return plain_password(text)


def plain_password(text: str) -> PasswordCheck:
    key = os.urandom(16)
    return PasswordCheck(hmac.digest(key, text.encode(), "sha256"), key)


def plain_users(passwords: Mapping[str, str]) -> Users:
    """Users with passwords in plain text, without roles."""
    return Users({name: User(plain_password(text), frozenset()) for name, text in passwords.items()})


def hashed_password(password: str, iterations: int = ITERATIONS) -> str:
    """The text of a password for the users file."""
    salt = os.urandom(16)
    digest = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    return f"{PBKDF2}{iterations}:{b64encode(salt).decode()}:{b64encode(digest).decode()}"
