"""Listeners, sockets and limits on connections and requests.

Each row: name, type, default, allowed values, importance, how it can be changed, documentation.
"""

from barnabas.settings.tables.row import Row

# Rows keep two lines each, so that the table can be read as one.
# fmt: off
SETTINGS: tuple[Row, ...] = (
    ("advertised.listeners", "list", None, "one or more", "high", "read-only",
     "Addresses that clients are told to use, where they differ from listeners."),
    ("connection.failed.authentication.delay.ms", "int", 100, "[0,...]", "low", "read-only",
     "Wait before a connection that failed to authenticate is closed."),
    ("connections.max.idle.ms", "long", 600_000, "", "medium", "read-only",
     "Close a connection after this long without a request; negative never does."),
    ("connections.max.reauth.ms", "long", 0, "", "medium", "read-only",
     "Time after which a SASL connection must authenticate again; 0 never asks."),
    ("early.start.listeners", "list", None, "", "high", "read-only",
     "Listeners that may answer before the authorizer is ready."),
    ("inter.broker.listener.name", "string", None, "", "medium", "read-only",
     "Listener that brokers use among themselves."),
    ("listener.security.protocol.map", "string",
     "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
     "", "low", "per-broker",
     "Security protocol of each listener name, as NAME:PROTOCOL pairs."),
    ("listeners", "list", "PLAINTEXT://:9092", "one or more", "high", "per-broker",
     "Addresses to listen on, as NAME://host:port; an empty host is every interface."),
    ("max.connection.creation.rate", "int", 2**31 - 1, "[0,...]", "medium", "cluster-wide",
     "New connections accepted per second."),
    ("max.connections", "int", 2**31 - 1, "[0,...]", "medium", "cluster-wide",
     "Connections open at a time."),
    ("max.connections.per.ip", "int", 2**31 - 1, "[0,...]", "medium", "cluster-wide",
     "Connections open at a time from one address."),
    ("max.connections.per.ip.overrides", "string", "", "", "medium", "cluster-wide",
     "Exceptions to max.connections.per.ip, as address:count pairs."),
    ("num.network.threads", "int", 3, "[1,...]", "high", "cluster-wide",
     "Kafka's network threads per listener; accepted, one event loop serves all listeners here."),
    ("queued.max.request.bytes", "long", -1, "", "medium", "read-only",
     "Bytes of requests that may wait before reading pauses; -1 is no limit."),
    ("queued.max.requests", "int", 500, "[1,...]", "high", "read-only",
     "Requests that may wait before reading pauses."),
    ("request.timeout.ms", "int", 30_000, "", "high", "read-only",
     "Longest wait for the answer to a request this node sends."),
    ("security.inter.broker.protocol", "string",
     "PLAINTEXT",
     "[PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL]", "medium", "read-only",
     "Security protocol among brokers, when no listener is named for it."),
    ("socket.connection.setup.timeout.max.ms", "long", 30_000, "", "medium", "read-only",
     "Longest wait for an outgoing connection after repeated failures."),
    ("socket.connection.setup.timeout.ms", "long", 10_000, "", "medium", "read-only",
     "First wait for an outgoing connection to be established."),
    ("socket.listen.backlog.size", "int", 50, "[1,...]", "medium", "read-only",
     "Connections the kernel may hold until they are accepted."),
    ("socket.receive.buffer.bytes", "int", 102_400, "", "high", "read-only",
     "Kernel receive buffer of a connection; -1 leaves it to the system."),
    ("socket.request.max.bytes", "int", 104_857_600, "[1,...]", "high", "read-only",
     "Largest request that is read; a larger one closes the connection."),
    ("socket.send.buffer.bytes", "int", 102_400, "", "high", "read-only",
     "Kernel send buffer of a connection; -1 leaves it to the system."),
)
# fmt: on
