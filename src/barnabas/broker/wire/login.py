"""The login of a connection on a listener with SASL, and its session afterwards.

Until a client is authenticated, its connection is a `LoginChannel`: it serves only requests that the login's
state machine (`security.sasl.server_login`) admits. Then it becomes an ordinary `Channel`: a request costs
nothing more than on a listener without SASL. When the session's time is over, a timer makes it a
`LoginChannel` again, which accepts the SaslHandshake of a re-authentication and closes for all else.
A login may take `LOGIN_SECONDS_MAX`, and its frames may have `sasl.server.max.receive.size`.
Does not know: mechanisms, settings.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from barnabas.broker.api.request_header import skip_header
from barnabas.broker.wire.channel import HEADER_BYTES_MIN, Channel
from barnabas.broker.wire.illegal_state import illegal_state_response
from barnabas.connection.inbox import FRAME_BYTES_MIN
from barnabas.protocol import ApiKey, ErrorCode, Message, ProtocolError
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.security.errors import AuthenticationFailed
from barnabas.security.principal import Principal
from barnabas.security.principal_builder import Peer
from barnabas.security.sasl.mechanism import Identity
from barnabas.security.sasl.server_login import REAUTHENTICATION_MS_MIN, ServerLogin, Session, State, Verdict

if TYPE_CHECKING:
    from barnabas.broker.api.routes import Route
    from barnabas.broker.wire.listener_sasl import ListenerSasl
    from barnabas.broker.wire.server import Listener

log = logging.getLogger("barnabas.logins")
LOGIN_SECONDS_MAX = 30.0
LARGE_FRAMES_MAX = 64  # of a listener at a time: they use memory that requests of known clients need
_head = struct.Struct(">hhih").unpack_from
_size = struct.Struct(">i").pack


class BareRoute:
    """Frames of tokens without a header, after a SaslHandshake of version 0."""

    key = -1

    def __init__(self, times: Any) -> None:
        self.times = times

    def count_errors(self, response: bytes) -> None:
        """Tokens have no error code."""

    def framed(self, correlation_id: int, response: bytes) -> list[bytes]:
        return [_size(len(response)), response]


class Login:
    __slots__ = ("_began_ms", "_channel", "_is_large", "_sasl", "_timer", "machine", "session")

    def __init__(self, channel: LoginChannel, sasl: ListenerSasl) -> None:
        self._channel: Channel = channel
        self._sasl = sasl
        self._timer: asyncio.TimerHandle | None = None
        self._began_ms: int | None = None  # the last re-authentication
        self._is_large = False  # receives a large frame
        self.session: Session | None = None
        self.machine: ServerLogin | None = self._new_machine()  # None: authenticated
        self._limit_frames()

    @property
    def sasl(self) -> ListenerSasl:
        return self._sasl

    def start_clock(self) -> None:
        self._set_timer(LOGIN_SECONDS_MAX, self._too_slow)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.note_large_frame(False)

    def close(self) -> None:
        """The connection is closed."""
        self.cancel()
        self.machine = None  # it refers to this object: the cycle would wait for the garbage collector

    def note_large_frame(self, is_large: bool) -> bool:
        """Count connections that receive a large frame before they are known. False: there are too many."""
        if is_large != self._is_large:
            self._is_large = is_large
            self._sasl.large_frames += 1 if is_large else -1
        return self._sasl.large_frames <= LARGE_FRAMES_MAX

    # -- the end of a login ----------------------------------------------------------------------

    def complete(self, identity: Identity) -> Session:
        """Make the connection an ordinary one. AuthenticationFailed if it must not become one."""
        channel, machine, earlier = self._channel, self.machine, self.session
        assert machine is not None
        session = self.session = machine.complete(identity, channel.now_ms())
        self.cancel()
        self.machine = None
        context = channel.context
        if context.principal != session.principal:
            context.principal = session.principal
        rights = context.rights
        if rights is not None:
            context.principal = rights.principal  # the same object: connections of a user share their rights
        channel.inbox.frame_bytes_max = channel.listener.frame_bytes_max
        channel.inbox.frame_bytes_min = FRAME_BYTES_MIN
        channel.__class__ = channel.listener.channel_class
        if session.expires_at_ms is None:
            channel.login = None
        elif session.lifetime_ms:
            self._set_timer(session.lifetime_ms / 1000, self._expire)
        else:  # the token has expired already
            self._expire()
        if earlier is None:
            self._sasl.logins.login_succeeded(can_renew=channel.context.version > 0 and not machine.is_bare)
        else:
            self._sasl.logins.renewed(int(channel.listener.loop.time() * 1000) - (self._began_ms or 0))
        return session

    def fail(self, route: Any, correlation_id: int, response: Any, reason: str) -> None:
        """Respond (unless None) after `connection.failed.authentication.delay.ms`, then close."""
        channel = self._channel
        if self.machine is not None:
            self.machine.state = State.FAILED
        self._sasl.logins.login_failed(is_renewal=self.session is not None)
        self._sasl.note_failure(channel.host, reason)
        channel.block_requests()
        channel.pause()

        def close() -> None:
            if response is not None:
                channel.respond(route, correlation_id, response)
                if channel.out and not channel.responses_pending:
                    channel.send()
            channel.close()

        self._set_timer(self._sasl.failure_delay_ms / 1000, close)

    # -- re-authentication -----------------------------------------------------------------------

    def may_begin_again(self) -> bool:
        """Whether a re-authentication may begin: at most one a second."""
        now_ms = int(self._channel.listener.loop.time() * 1000)
        if self._began_ms is not None and now_ms - self._began_ms < REAUTHENTICATION_MS_MIN:
            return False
        self._began_ms = now_ms
        return True

    def begin_again(self) -> None:
        """Accept requests of a login only, until it is complete."""
        self.machine = self._new_machine()
        self._limit_frames()
        self._channel.__class__ = LoginChannel
        self.start_clock()

    def handshake(self, request: SaslHandshakeRequest, route: Route) -> SaslHandshakeResponse | None:
        """The response; None if it is sent later, before the connection is closed."""
        channel, machine = self._channel, self.machine
        assert machine is not None
        version, correlation_id = channel.context.version, channel.context.correlation_id
        shaken = machine.handshake(request.mechanism, version)
        response = SaslHandshakeResponse(error_code=shaken.error, mechanisms=shaken.mechanisms)
        if shaken.error:
            offered = ", ".join(shaken.mechanisms)
            reason = f"the SASL mechanism {request.mechanism[:50]!r} is not one of those enabled: {offered}"
            self.fail(route, correlation_id, response, reason)
            return None
        if machine.is_bare:
            channel.inbox.frame_bytes_min = 0
        return response

    # -- inside ----------------------------------------------------------------------------------

    def _new_machine(self) -> ServerLogin:
        return ServerLogin(self._sasl.offer(), self._build_principal, self.session)

    def _build_principal(self, mechanism: str, identity: Identity) -> Principal:
        channel = self._channel
        peer = Peer(channel.listener.name, channel.host, identity.name, mechanism, identity.is_token)
        return self._sasl.principal_builder()(peer)

    def _limit_frames(self) -> None:
        self._channel.inbox.frame_bytes_max = min(
            self._sasl.frame_bytes_max, self._channel.listener.frame_bytes_max
        )

    def _set_timer(self, seconds: float, then: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._channel.listener.loop.call_later(seconds, then)

    def _too_slow(self) -> None:
        self._channel.refuse(f"the login was not complete after {LOGIN_SECONDS_MAX:.0f} s")

    def _expire(self) -> None:
        self._timer = None
        self._channel.__class__ = LoginChannel


class LoginChannel(Channel):
    """A connection that is not authenticated, or not any more. It has the same fields as a `Channel`: the
    class of a connection changes while it is open."""

    __slots__ = ()

    def __init__(self, listener: Listener, host: str) -> None:
        super().__init__(listener, host)
        assert listener.sasl is not None
        self.login = Login(self, listener.sasl)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self.login is not None:
            self.login.start_clock()

    def _handle(self, run: memoryview) -> bool:
        handled = super()._handle(run)
        login = self.login
        if login is not None:
            is_large = login.machine is not None and self.inbox.holds_large_frame
            if not login.note_large_frame(is_large):
                self.refuse(f"more than {LARGE_FRAMES_MAX} large frames of logins at a time")
        return handled

    def _request(self, frame: memoryview) -> None:
        login = self.login
        assert login is not None
        machine = login.machine
        if machine is not None and machine.is_bare:
            if machine.state is State.EXCHANGE:
                self._take_token(login.sasl.bare_route, 0, bytes(frame))
            return
        if len(frame) < HEADER_BYTES_MIN:
            raise ProtocolError("header", f"{len(frame)} bytes are too few for a request header")
        key, version, correlation_id, client_length = _head(frame)
        if machine is None:  # the session is over
            if key != ApiKey.SASL_HANDSHAKE or not login.may_begin_again():
                login.sasl.logins.expired += 1
                self.refuse("its session is over, and it does not authenticate again")
                return
            login.begin_again()
            machine = login.machine
            assert machine is not None
        route = login.sasl.router.find(key, version)
        verdict = machine.admit(key, route is not None)
        if verdict is Verdict.REFUSE or route is None:
            reason = f"api key {key} version {version} is not allowed before the login is complete"
            login.fail(None, 0, None, reason)
            return
        request = self._decode(route, frame, client_length)
        self.context.correlation_id = correlation_id
        self.context.version = version
        if verdict is Verdict.ILLEGAL:
            reason = f"{ApiKey(key).name} was sent during the login"
            login.fail(route, correlation_id, illegal_state_response(request), reason)
        elif key == ApiKey.SASL_HANDSHAKE:
            response = login.handshake(request, route)
            if response is not None:
                self.respond(route, correlation_id, response)
        elif key == ApiKey.SASL_AUTHENTICATE:
            self._take_token(route, correlation_id, bytes(request.auth_bytes))
        else:
            told: Any = route.handler(request, self.context)
            if told.error_code == ErrorCode.NONE:
                machine.versions_told()
            self.respond(route, correlation_id, told)

    def _decode(self, route: Route, frame: memoryview, client_length: int) -> Any:
        position = HEADER_BYTES_MIN + max(client_length, 0)
        self.read_client(frame, position, route)
        if route.flexible_request:
            if position >= len(frame):
                raise ProtocolError("header", "the header is cut off")
            position = skip_header(frame) if frame[position] else position + 1
        self._route, self._frame, self._body_at = route, frame, position
        return route.decode(frame, position)[0]

    # -- tokens ----------------------------------------------------------------------------------

    def _take_token(self, route: Any, correlation_id: int, token: bytes) -> None:
        login = self.login
        assert login is not None and login.machine is not None
        if login.machine.is_slow(token):
            work = self._step_in_thread(route, correlation_id, token, login, login.machine)
            self._wait(route, correlation_id, work, perf_counter_ns())
            return
        try:
            response = self._stepped(route, login, *login.machine.step(token))
        except AuthenticationFailed as error:
            self._fail(route, correlation_id, error, login)
            return
        self.respond(route, correlation_id, response)

    async def _step_in_thread(
        self, route: Any, correlation_id: int, token: bytes, login: Login, machine: ServerLogin
    ) -> Any:
        try:
            outcome = await self.listener.broker.threads.logins.run(machine.step, token)
            return self._stepped(route, login, *outcome)
        except AuthenticationFailed as error:
            self._fail(route, correlation_id, error, login)
        return None

    def _stepped(self, route: Any, login: Login, response: bytes, identity: Identity | None) -> Any:
        lifetime_ms = login.complete(identity).lifetime_ms if identity is not None else 0
        if isinstance(route, BareRoute):
            return response
        return SaslAuthenticateResponse(auth_bytes=response, session_lifetime_ms=lifetime_ms)

    def _fail(self, route: Any, correlation_id: int, error: AuthenticationFailed, login: Login) -> None:
        response: Message | None = None
        if not isinstance(route, BareRoute):
            response = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=error.told
            )
        login.fail(route, correlation_id, response, error.reason)
