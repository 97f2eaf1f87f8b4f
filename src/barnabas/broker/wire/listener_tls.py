"""TLS of one listener: its context, the connections in the middle of a handshake, failures in the log.

In: the listener's settings, accepted connections. Out: a channel for each connection whose handshake is
complete, with the principal of its certificate. Handshakes compute in threads. At most `HALF_OPEN_MAX`
connections may be in a handshake, and at most `SLOTS` of them have an OpenSSL object, which takes 50 KB; the
others wait for a slot. If there is no place, the oldest connection that waits for its peer is closed; one
that waits for us is not. Each is closed after `HANDSHAKE_SECONDS_MAX`. So half-open connections cost bounded
memory, and do not keep others out, and a crowd that connects at the same time is served one by one.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.security.errors import AuthenticationFailed
from barnabas.security.principal_builder import Peer
from barnabas.security.tls.contexts import ServerTls, TlsSettings, server_tls, tls_settings
from barnabas.security.tls.distinguished_names import SETTING as RULES
from barnabas.security.tls.distinguished_names import MappingRules, subject_name
from barnabas.security.tls.failures import describe, not_tls
from barnabas.security.tls.replacing import check_own_trust, check_replacement
from barnabas.security.tls.transport import NOT_TLS, TlsTransport, receive_memory
from barnabas.settings.listener_settings import ListenerSettings

if TYPE_CHECKING:
    from barnabas.broker.wire.channel import Channel
    from barnabas.runtime.threads import Threads
    from barnabas.settings import BrokerSettings, EndPoint

log = logging.getLogger("barnabas.tls")
HALF_OPEN_MAX = 2048
SLOTS = 512
HANDSHAKE_SECONDS_MAX = 30.0
PEER_SECONDS_MIN = 1.0  # before a peer that does not go on loses its slot to another
LOOK_FOR_SLOTS_S = 0.25
FAILURES_TOLD_MAX = 20  # in a time of
FAILURES_TOLD_EVERY_S = 10.0
Fingerprint = tuple[TlsSettings, tuple[tuple[int, int, int] | None, ...]]


class ListenerTls:
    def __init__(
        self,
        plan: TlsPlan,
        loaded: ServerTls,
        seen: Fingerprint,
        threads: Threads,
    ) -> None:
        self.name = plan.listener
        self.loop = asyncio.get_running_loop()
        self.threads = threads
        self.receive = receive_memory(self.loop)
        self.half_open: dict[ServerTransport, float] = {}  # since when, oldest first
        self.loaded = loaded
        self.seen = seen  # of the stores in use
        self.refused: Fingerprint | None = None  # the last ones that could not take their place
        self.refusal = ""  # why, as the log says
        self.takes_principal = plan.protocol == "SSL"  # with SASL the login names the principal
        self._rules = MappingRules(plan.rules)
        self._check: asyncio.TimerHandle | None = None
        self._slots_used = 0
        self._waiting: deque[ServerTransport] = deque()  # for a slot, oldest first
        self._slot_check: asyncio.TimerHandle | None = None
        self.succeeded = 0  # handshakes that made their peer a user; on SASL_SSL the login does
        self.failed = 0
        self._is_closed = False
        self._told_since = 0.0
        self._told = 0
        log.info("listener %s speaks TLS in user space: %s", self.name, kernel_tls())

    def use(self, loaded: ServerTls, seen: Fingerprint) -> None:
        """Use other stores for connections that begin their handshake from now on."""
        self.loaded, self.seen, self.refused, self.refusal = loaded, seen, None, ""

    def accept(
        self, host: str, new_channel: Callable[[Peer], Channel | None], gone: Callable[[], None]
    ) -> ServerTransport:
        """The protocol of an accepted connection. `gone` is called if it ends without a channel."""
        return ServerTransport(self, host, new_channel, gone)

    def begin(self, made: ServerTransport) -> None:
        """Count a connection whose handshake begins."""
        if self._is_closed:
            made.abort()
            return
        if len(self.half_open) >= HALF_OPEN_MAX and not self.give_way():
            made.give_up(f"{HALF_OPEN_MAX} connections wait for their TLS handshake already")
            return
        now = self.half_open[made] = self.loop.time()
        if self._check is None:
            self._check = self.loop.call_at(now + HANDSHAKE_SECONDS_MAX, self._close_late)

    def give_way(self) -> bool:
        """Close the oldest connection whose handshake waits for its peer. Returns False if there is none."""
        oldest = next((each for each in self.half_open if not each.waits_for_us), None)
        if oldest is None:
            return False
        del self.half_open[oldest]
        oldest.give_up("another connection takes its place: too many are in their TLS handshake")
        return True

    # -- slots -----------------------------------------------------------------------------------

    def ask_for_slot(self, asking: ServerTransport) -> None:
        """Begin a handshake now, or when there is a slot."""
        if self._slots_used < SLOTS:
            self._slots_used += 1
            asking.begin_with_slot()
        else:
            self._waiting.append(asking)
            self._look_for_slot()

    def release_slot(self) -> None:
        self._slots_used -= 1
        while self._waiting and self._slots_used < SLOTS:
            following = self._waiting.popleft()
            if not following.is_lost and not following.is_closing():
                self._slots_used += 1
                following.begin_with_slot()

    def _look_for_slot(self) -> None:
        """Take slots from peers that do not go on, for those that wait."""
        self._slot_check = None
        since = self.loop.time() - PEER_SECONDS_MIN
        wanted = len(self._waiting)
        for each in [each for each in self.half_open if each.has_slot and not each.is_shaking]:
            if not wanted or each.slot_since > since:
                break
            wanted -= 1
            each.give_up("another connection takes its place: its TLS handshake does not go on")
        if self._waiting and self._slot_check is None:
            self._slot_check = self.loop.call_later(LOOK_FOR_SLOTS_S, self._look_for_slot)

    def close(self) -> None:
        self._is_closed = True
        self._waiting.clear()
        if self._slot_check is not None:
            self._slot_check.cancel()
        if self._check is not None:
            self._check.cancel()
        for each in list(self.half_open):
            each.abort()

    def _close_late(self) -> None:
        self._check = None
        now = self.loop.time()
        for each, since in list(self.half_open.items()):
            if since + HANDSHAKE_SECONDS_MAX > now + 0.001:
                self._check = self.loop.call_at(since + HANDSHAKE_SECONDS_MAX, self._close_late)
                break
            del self.half_open[each]
            each.give_up(f"the TLS handshake is not complete after {HANDSHAKE_SECONDS_MAX:.0f} s")

    def peer_of(self, shaken: ssl.SSLObject, host: str) -> Peer:
        """A peer with the name in its certificate. Called in threads. AuthenticationFailed if no rule
        fits."""
        suites = self.loaded.suites
        cipher = shaken.cipher()
        if suites and cipher is not None and cipher[1] == "TLSv1.3" and cipher[0] not in suites:
            raise AuthenticationFailed(
                "cipher suite", f"{cipher[0]} is not among ssl.cipher.suites; offer another one first"
            )
        certificate = shaken.getpeercert(binary_form=True) if self.takes_principal else None
        if not certificate:
            return Peer(self.name, host)
        from cryptography.x509 import load_der_x509_certificate

        subject = subject_name(load_der_x509_certificate(certificate))
        return Peer(self.name, host, self._rules.user_name(subject), subject=subject)

    def note_failure(self, host: str, reason: str) -> None:
        """Log a failed handshake; a flood of them a few times."""
        now = self.loop.time()
        if now - self._told_since >= FAILURES_TOLD_EVERY_S:
            if self._told > FAILURES_TOLD_MAX:
                log.info(
                    "listener %s: %d more connections failed their TLS handshake",
                    self.name,
                    self._told - FAILURES_TOLD_MAX,
                )
            self._told_since, self._told = now, 0
        self._told += 1
        if self._told <= FAILURES_TOLD_MAX:
            log.info("listener %s closes the connection from %s: %s", self.name, host, reason)


class ServerTransport(TlsTransport):
    """The broker's side of a TLS connection."""

    __slots__ = ("_gone", "_host", "_new_channel", "_tls", "has_slot", "slot_since", "waits_for_slot")

    def __init__(
        self,
        tls: ListenerTls,
        host: str,
        new_channel: Callable[[Peer], Channel | None],
        gone: Callable[[], None],
    ) -> None:
        super().__init__(tls.loop, tls.loaded.context, tls.threads.run, tls.receive)
        self._tls = tls
        self._host = host
        self._new_channel = new_channel
        self._gone: Callable[[], None] | None = gone
        self.has_slot = self.waits_for_slot = False
        self.slot_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._tls.begin(self)

    def hello_complete(self) -> None:
        self.waits_for_slot = True
        self._tls.ask_for_slot(self)

    def begin_with_slot(self) -> None:
        self.waits_for_slot, self.has_slot = False, True
        self.slot_since = self._tls.loop.time()
        super().hello_complete()

    @property
    def waits_for_us(self) -> bool:
        return self.is_shaking or self.waits_for_slot

    def _leave(self) -> None:
        """The handshake is over."""
        self._tls.half_open.pop(self, None)
        if self.has_slot:
            self.has_slot = False
            self._tls.release_slot()

    def examine(self, shaken: ssl.SSLObject) -> Peer:
        return self._tls.peer_of(shaken, self._host)

    def shaken(self, examined: Any) -> Channel | None:
        self._leave()
        channel = self._new_channel(examined)
        if channel is None:
            self._tls.failed += 1
            return None
        self._tls.succeeded += self._tls.takes_principal
        self._gone = None  # the channel releases its place itself
        return channel

    def refused(self, error: BaseException | str | None) -> None:
        if isinstance(error, AuthenticationFailed):
            reason = error.reason
        elif error is NOT_TLS:
            reason = not_tls(self.first_bytes)
        else:
            reason = describe(error, is_server=True)
        if error is None and self.is_silent:
            return  # a port scan, or a check of health
        self._tls.failed += error is not None
        self._tls.note_failure(self._host, reason)

    def gone(self) -> None:
        self._leave()
        gone, self._gone = self._gone, None
        if gone is not None:
            gone()

    def give_up(self, reason: str) -> None:
        self._fail(reason)


def kernel_tls() -> str:
    """Why the kernel does not encrypt: for the log."""
    if not hasattr(ssl, "OP_ENABLE_KTLS"):
        return "Python has no kernel TLS before 3.12"
    if not Path("/sys/module/tls").exists():
        return "the kernel has no tls module"
    return "kernel TLS is not used yet"


class TlsPlan:
    """The TLS of a listener as settings describe it. Its methods read files: call them in a thread."""

    def __init__(self, settings: BrokerSettings, endpoint: EndPoint) -> None:
        """SecuritySettingsError if a setting cannot be understood."""
        own = ListenerSettings(settings, endpoint.name)
        self.listener = endpoint.name
        self.protocol = endpoint.security_protocol
        self.rules = own.text(RULES) or ""
        self._settings = tls_settings(lambda name: self._value(own, name))
        self._is_for_brokers = endpoint.name == settings.inter_broker_listener_name
        self._allow_dn: bool = settings["ssl.allow.dn.changes"]
        self._allow_san: bool = settings["ssl.allow.san.changes"]

    def _value(self, own: ListenerSettings, name: str) -> str | None:
        """On SASL_SSL clients need a certificate only where the listener's own setting says so."""
        if name == "ssl.client.auth" and self.protocol == "SASL_SSL":
            found: str | None = own.own(name)
            return found
        return own.text(name)

    def load(self, before: ServerTls | None = None) -> ServerTls:
        """Read the stores. SecuritySettingsError if they cannot be used, or not in place of those before."""
        loaded = server_tls(self._settings)
        if self._is_for_brokers:
            check_own_trust(loaded, self._settings)
        if before is not None:
            check_replacement(
                before.key_store, loaded.key_store, allow_dn=self._allow_dn, allow_san=self._allow_san
            )
        return loaded

    def fingerprint(self) -> Fingerprint:
        """Changes when the settings or the files change. It holds secrets."""
        files = (self._settings.key_store.location, self._settings.trust_store.location)
        return self._settings, tuple(file_mark(path) for path in files if path)


def file_mark(path: str) -> tuple[int, int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
