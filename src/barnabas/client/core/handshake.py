"""Everything between a connection that was just made and its first request.

Today that is ApiVersions. Authentication belongs here and nowhere else: a SASL mechanism is a coroutine that
sends SaslHandshake and SaslAuthenticate by `connection.send`, so it serves every face. TLS begins one step
earlier, where a face makes its socket (`Network.connect`).
"""

from __future__ import annotations

from barnabas.client.core.connection import ConnectionCore
from barnabas.client.core.errors import ConnectError, ConnectionLost, RequestTimeout
from barnabas.client.core.versions import ask_versions


async def shake_hands(connection: ConnectionCore) -> None:
    """Make a connection ready for requests, or close it and raise ConnectError."""
    try:
        connection.versions = await ask_versions(connection)
    except (ConnectionLost, RequestTimeout) as error:
        await connection.close()
        raise ConnectError(
            connection.address, f"connected, but nothing there speaks Kafka's protocol ({error})"
        ) from error
    except BaseException:
        await connection.close()
        raise
