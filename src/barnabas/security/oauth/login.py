"""A client's token, fetched once and replaced by a thread before it expires (KIP-255).

Connections take the token that is there: only the first login waits for the identity provider, in a thread
where there is an event loop. Clients of one process with the same settings share a login.
"""

from __future__ import annotations

import json
import logging
import math
import os
import random
import threading
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping

from barnabas.security.errors import AuthenticationFailed, SecuritySettingsError
from barnabas.security.oauth.http import ProviderError
from barnabas.security.oauth.retrieving import Retriever, token_retriever
from barnabas.security.oauth.settings import Properties, RefreshSettings, refresh_settings
from barnabas.security.sasl.oauthbearer import OAuthBearerClient, check_extensions

FIRST_TOKEN_SECONDS_MAX = 10.0  # brokers allow 30 for a whole login
LOGINS_MAX = 64  # of one process: settings beyond that many get logins that are not shared
EXTENSION = "extension_"
UNSECURED_EXTENSION = "unsecuredLoginExtension_"

log = logging.getLogger(__name__)


def refresh_after_s(life_s: float, settings: RefreshSettings, jitter: float) -> float:
    """How long a token is used that lives this long; `jitter` lies between 0 and 1."""
    after_s = life_s * (settings.window_factor + settings.window_jitter * jitter)
    if settings.period_s_min + settings.buffer_s < life_s:  # Kafka ignores both for tokens that live shorter
        after_s = max(min(after_s, life_s - settings.buffer_s), settings.period_s_min)
    return after_s


def expiry_of(token: str) -> float:
    """The exp claim of a token that a client got. ProviderError if it is not a JWT."""
    try:
        part = token.split(".")[1]
        expires_s = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))["exp"]
    except (LookupError, ValueError, TypeError, RecursionError):
        expires_s = None
    if isinstance(expires_s, bool) or not isinstance(expires_s, int | float) or not math.isfinite(expires_s):
        raise ProviderError("the token is not a JWT with an exp claim", may_retry=False)
    return float(expires_s)


class Login:
    """Holds the current token. Only the thread of this login calls `retrieve`."""

    def __init__(
        self, retrieve: Retriever, settings: RefreshSettings, clock: Callable[[], float] = time.time
    ) -> None:
        self._retrieve = retrieve
        self._settings = settings
        self._clock = clock
        self._token = ""
        self._expires_s = 0.0
        self._problem = "the identity provider has not responded yet"
        self._may_retry = True
        self._attempts = 0
        self._is_asked = self._is_closed = False
        self._changed = threading.Condition()  # for the fields above, between the thread and logins

    def start(self) -> None:
        threading.Thread(target=self._run, name="barnabas-oauth-login", daemon=True).start()

    @property
    def has_token(self) -> bool:
        return self._clock() < self._expires_s

    def token(self) -> str:
        """The current token. Waits for one if there is none, so not for event loops unless `has_token`.
        AuthenticationFailed if none could be had."""
        if not self.has_token:
            with self._changed:
                seen = self._attempts
                self._is_asked = True
                self._changed.notify_all()
                self._changed.wait_for(
                    lambda: self.has_token or (self._attempts > seen and not self._may_retry),
                    FIRST_TOKEN_SECONDS_MAX,
                )
            if not self.has_token:
                raise AuthenticationFailed(f"cannot get a token: {self._problem}")
        return self._token

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def renew(self) -> bool:
        """Replace the token once. The old one stays if it fails."""
        try:
            token = self._retrieve()
            expires_s = expiry_of(token)
            if expires_s <= self._clock():
                raise ProviderError("the token that was given has expired already", may_retry=False)
        except ProviderError as error:
            level = logging.DEBUG if str(error) == self._problem else logging.WARNING  # once for each reason
            self._problem, self._may_retry = str(error), error.may_retry
            log.log(level, "cannot get a token for OAUTHBEARER: %s", error)
            return False
        except Exception as error:  # the thread must live on
            self._problem, self._may_retry = f"unexpected {type(error).__name__}, see the log", True
            log.exception("cannot get a token for OAUTHBEARER")
            return False
        self._token, self._expires_s = token, expires_s
        self._problem = ""
        return True

    def _run(self) -> None:
        pause_s = self._settings.backoff_s
        while not self._is_closed:
            is_renewed = self.renew()
            with self._changed:
                self._attempts += 1
                self._is_asked = False
                self._changed.notify_all()
                if is_renewed:
                    pause_s = self._settings.backoff_s
                    self._changed.wait_for(self._must_work, self._next_s())
                    continue
                self._changed.wait_for(lambda: self._is_closed, pause_s)
                if not self._may_retry and not self.has_token:
                    self._changed.wait_for(self._must_work)  # the next login may find the provider mended
            pause_s = min(pause_s * 2, self._settings.backoff_max_s)

    def _must_work(self) -> bool:
        return self._is_closed or (self._is_asked and not self.has_token)

    def _next_s(self) -> float:
        return max(refresh_after_s(self._expires_s - self._clock(), self._settings, random.random()), 0.1)


class LoginExchange(OAuthBearerClient):
    """Logs in with the token of the time at which it begins."""

    def __init__(self, login: Login, extensions: Mapping[str, str]) -> None:
        super().__init__("", extensions)
        self._login = login
        self.is_slow = not login.has_token

    def first(self) -> bytes:
        self._token = self._login.token()
        return super().first()


_logins: dict[tuple[int, frozenset[tuple[str, str]]], Login] = {}
_logins_lock = threading.Lock()


def client_exchanges(
    properties: Mapping[str, str], options: Mapping[str, str]
) -> Callable[[str], OAuthBearerClient]:
    """A function that makes a login at a broker, for `ClientSecurity.new_exchange`.

    A thread gets the first token; the first login waits for it. SecuritySettingsError.
    """
    extensions = {
        name.removeprefix(prefix): value
        for prefix in (EXTENSION, UNSECURED_EXTENSION)
        for name, value in options.items()
        if name.startswith(prefix)
    }
    problem = check_extensions(extensions)
    if problem is not None:
        raise SecuritySettingsError(f"sasl.jaas.config: {problem}")
    login = _shared_login(properties, options)
    return lambda _host: LoginExchange(login, extensions)


def _shared_login(properties: Mapping[str, str], options: Mapping[str, str]) -> Login:
    relevant = {
        (name, str(value)) for name, value in properties.items() if name.startswith(("sasl.", "ssl."))
    }
    relevant |= {(f"jaas.{name}", value) for name, value in options.items()}
    key = (os.getpid(), frozenset(relevant))  # threads do not survive a fork
    with _logins_lock:
        login = _logins.get(key)
        if login is None:
            login = Login(token_retriever(properties, options), refresh_settings(Properties(properties)))
            login.start()
            if len(_logins) < LOGINS_MAX:
                _logins[key] = login
    return login
