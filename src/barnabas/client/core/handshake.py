"""Everything between a connection that was just made and its first request: ApiVersions, then the login.

It serves every face. TLS begins one step earlier, where a face makes its socket (`Network.connect`).
"""

from __future__ import annotations

from barnabas.client.core.connection import ConnectionCore
from barnabas.client.core.errors import ConnectError, ConnectionLost, RequestTimeout
from barnabas.client.core.versions import ask_versions


async def shake_hands(connection: ConnectionCore) -> None:
    """Make a connection ready for requests, or close it and raise ConnectError."""
    try:
        connection.versions = await ask_versions(connection)
        if connection.settings.security.mechanism:
            await connection.authenticate()
    except (ConnectionLost, RequestTimeout) as error:
        await connection.close()
        raise ConnectError(connection.address, reason_of(connection, error)) from error
    except BaseException:
        await connection.close()
        raise


def reason_of(connection: ConnectionCore, error: ConnectionLost | RequestTimeout) -> str:
    if connection.settings.security.tls is not None:  # then the other side knows TLS at least
        return f"the TLS handshake is complete, but no response came ({error})"
    return f"connected, but nothing there speaks Kafka's protocol ({error}); check port and security.protocol"
