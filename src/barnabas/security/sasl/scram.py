"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): both prove the password, nobody sends it.

The server's side works from stored keys, or from a delegation token if the client sends `tokenauth=true`. A
name that does not exist goes through the same exchange with keys made up from a secret, always the same for
the same name: neither messages nor time tell it from a wrong password.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from functools import lru_cache

from barnabas.security.errors import AuthenticationFailed
from barnabas.security.sasl.mechanism import ClientExchange, Identity
from barnabas.security.sasl.mechanisms import (
    ClientConfig,
    CredentialStore,
    ServerConfig,
    ServerMechanism,
    StoredKeys,
)
from barnabas.security.sasl.scram_messages import (
    ALGORITHMS,
    HEADER,
    ITERATIONS_MIN,
    combined,
    encoded,
    escaped,
    parse_client_final,
    parse_client_first,
    parse_server_final,
    parse_server_first,
    salted_password,
    stored_keys,
)

NONCE_BYTES = 18
SALT_BYTES = 24  # of names that do not exist: as many as our tools make for real ones
MESSAGE_BYTES_MAX = 64 * 1024
ITERATIONS_MAX = 1_000_000  # a client accepts: a hostile server must not keep it busy for hours
TOKEN_KEYS_MAX = 10_000
TOKEN_EXTENSION = "tokenauth"


def refused(mechanism: str) -> str:
    return (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism "
        + mechanism
    )


@lru_cache(maxsize=TOKEN_KEYS_MAX)
def token_keys(mechanism: str, password: str, salt: bytes) -> StoredKeys:
    """Keys of a delegation token, derived at its first login on this node: some milliseconds."""
    algorithm = ALGORITHMS[mechanism]
    salted = salted_password(algorithm, password, salt, ITERATIONS_MIN)
    return stored_keys(algorithm, salted, salt, ITERATIONS_MIN)


def decoy(credentials: CredentialStore, mechanism: str, name: str) -> bytes:
    """Bytes that look random and are always the same for a name."""
    return hmac.digest(credentials.decoy_secret, f"{mechanism} {name}".encode(), hashlib.sha256)


class ScramServer:
    def __init__(
        self,
        mechanism: str,
        credentials: CredentialStore,
        nonce: str,
    ) -> None:
        self._mechanism = mechanism
        self._algorithm = ALGORITHMS[mechanism]
        self._credentials = credentials
        self._nonce = nonce
        self._header = ""  # of the first message
        self._signed = ""  # the messages so far, without the proof
        self._name = ""
        self._keys: StoredKeys | None = None  # known after the first message
        self._candidate: Identity | None = None  # who it is if the proof is right
        self._refusal = ""  # why it cannot be right
        self._identity: Identity | None = None

    @property
    def identity(self) -> Identity | None:
        return self._identity

    def step(self, message: bytes) -> bytes:
        try:
            if len(message) > MESSAGE_BYTES_MAX:
                raise ValueError(f"a message of {len(message)} bytes is too long for SCRAM")
            return self._first(message) if self._keys is None else self._final(message, self._keys)
        except ValueError as error:
            raise AuthenticationFailed(refused(self._mechanism), str(error)) from None

    def _first(self, message: bytes) -> bytes:
        first = parse_client_first(message)
        if first.authorization not in ("", first.name):
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        is_token = first.extensions.get(TOKEN_EXTENSION, "").lower() == "true"
        keys = self._keys = self._token_keys(first.name) if is_token else self._user_keys(first.name)
        self._header, self._name = first.header, first.name
        self._nonce = first.nonce + self._nonce
        response = f"r={self._nonce},s={encoded(keys.salt)},i={keys.iterations}"
        self._signed = f"{first.bare},{response}"
        return response.encode()

    def _user_keys(self, name: str) -> StoredKeys:
        found = self._credentials.scram_keys(self._mechanism, name)
        made_up = self._made_up_keys(name)
        if found is None:
            self._refusal = f"no SCRAM credential of user {name!r}"
            return made_up
        self._candidate = Identity(name)
        return found

    def _token_keys(self, token_id: str) -> StoredKeys:
        """Nothing is derived for a token that does not exist: strangers could keep the node busy with it, and
        nobody can guess the id of one that does."""
        token = self._credentials.token(token_id)
        made_up = self._made_up_keys(f"token {token_id}")
        if token is None:
            self._refusal = f"no delegation token {token_id!r}"
            return made_up
        self._candidate = Identity(token.owner, is_token=True, expires_at_ms=token.expires_at_ms)
        return token_keys(self._mechanism, token.hmac, made_up.salt)

    def _made_up_keys(self, name: str) -> StoredKeys:
        salt = decoy(self._credentials, self._mechanism, name)
        key = hashlib.new(self._algorithm, salt).digest()
        return StoredKeys(salt[:SALT_BYTES], key, key, ITERATIONS_MIN)

    def _final(self, message: bytes, keys: StoredKeys) -> bytes:
        final = parse_client_final(message)
        if final.nonce != self._nonce:
            raise ValueError("the client's last message has another nonce than the server's")
        if final.binding not in (self._header.encode(), HEADER.encode()):  # Java's client sends the latter
            raise ValueError("the client's channel binding differs from its first message")
        signed = f"{self._signed},{final.bare}".encode()
        signature = hmac.digest(keys.stored_key, signed, self._algorithm)
        proof = final.proof.ljust(len(signature), b"\0")[: len(signature)]
        client_key = combined(signature, proof)
        is_right = hmac.compare_digest(hashlib.new(self._algorithm, client_key).digest(), keys.stored_key)
        verifier = hmac.digest(keys.server_key, signed, self._algorithm)
        if not is_right or len(final.proof) != len(signature) or self._candidate is None:
            raise ValueError(self._refusal or f"wrong password of {self._name!r}")
        self._identity = self._candidate
        return b"v=" + encoded(verifier).encode()


class ScramClient:
    is_slow = False

    def __init__(self, login: ScramLogin, nonce: str) -> None:
        self._login = login
        self._nonce = nonce
        self._bare = f"n={escaped(login.user)},r={nonce}{login.extensions}"
        self._verifier = b""  # expected of the server, known after its first message
        self._is_proved = False

    def first(self) -> bytes:
        return f"{HEADER}{self._bare}".encode()

    def step(self, challenge: bytes) -> bytes | None:
        try:
            if self._verifier:
                if not hmac.compare_digest(parse_server_final(challenge), self._verifier):
                    raise ValueError("the server does not know the password: its signature is wrong")
                return None
            return self._final(challenge)
        except ValueError as error:
            raise AuthenticationFailed(f"{self._login.mechanism}: {error}") from None

    def _final(self, challenge: bytes) -> bytes:
        first = parse_server_first(challenge)
        if not first.nonce.startswith(self._nonce) or first.nonce == self._nonce:
            raise ValueError("the server's nonce does not continue ours")
        if not ITERATIONS_MIN <= first.iterations <= ITERATIONS_MAX:
            raise ValueError(
                f"the server asks for {first.iterations} iterations, "
                f"allowed are {ITERATIONS_MIN} to {ITERATIONS_MAX}"
            )
        login = self._login
        salted = login.salted(first.salt, first.iterations)
        keys = stored_keys(login.algorithm, salted, first.salt, first.iterations)
        bare = f"c={encoded(HEADER.encode())},r={first.nonce}"
        signed = f"{self._bare},{challenge.decode()},{bare}".encode()
        client_key = hmac.digest(salted, b"Client Key", login.algorithm)
        proof = combined(client_key, hmac.digest(keys.stored_key, signed, login.algorithm))
        self._verifier = hmac.digest(keys.server_key, signed, login.algorithm)
        return f"{bare},p={encoded(proof)}".encode()


class ScramLogin:
    """A user's password for all logins of a client. Remembers the last salted one: salting takes long."""

    def __init__(self, mechanism: str, user: str, password: str, extensions: str = "") -> None:
        self.mechanism = mechanism
        self.algorithm = ALGORITHMS[mechanism]
        self.user = user
        self.extensions = extensions
        self._password = password
        self._last: tuple[bytes, int, bytes] | None = None

    def salted(self, salt: bytes, iterations: int) -> bytes:
        last = self._last
        if last is None or last[:2] != (salt, iterations):
            made = salted_password(self.algorithm, self._password, salt, iterations)
            last = self._last = salt, iterations, made
        return last[2]


def server_mechanism(config: ServerConfig) -> ServerMechanism:
    return ServerMechanism(
        lambda: ScramServer(config.mechanism, config.credentials, encoded(config.random_bytes(NONCE_BYTES))),
        is_slow=lambda message: b"tokenauth" in message,  # the keys of a token may have to be derived
    )


def client_mechanism(config: ClientConfig) -> Callable[[str], ClientExchange]:
    is_token = config.jaas is not None and config.jaas.options.get(TOKEN_EXTENSION, "").lower() == "true"
    login = ScramLogin(
        config.mechanism,
        config.option("username"),
        config.option("password"),
        f",{TOKEN_EXTENSION}=true" if is_token else "",
    )
    return lambda host: ScramClient(login, encoded(config.random_bytes(NONCE_BYTES)))
