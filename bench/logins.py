"""SCRAM logins a second: connect, SaslHandshake, two rounds of SaslAuthenticate, close; again and again.

In: a contender whose listener wants SASL. Out: logins a second of all workers. Workers are processes, so that
the load is not one interpreter's; they keep the salted password, as clients do.
`python -m bench.logins PORT SECONDS` is one worker: it prints how many logins it made.
"""

from __future__ import annotations

import secrets
import socket
import struct
import subprocess
import sys
import time

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from barnabas.security.sasl.scram import ScramClient, ScramLogin
from bench import frames
from bench.brokers import BrokerError, Contender
from bench.loads import Scale, Trial

ROW = "scram-logins"
MECHANISM = "SCRAM-SHA-512"
WORKERS = 4
ADMIN, USER, PASSWORD = "admin", "bench", "not-a-secret"
SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="{ADMIN}" password="{PASSWORD}" user_{ADMIN}="{PASSWORD}";'
)
SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": f"PLAIN,{MECHANISM}",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": JAAS,
    f"listener.name.plaintext.{MECHANISM.lower()}.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
}


def logins(broker: Contender, scale: Scale) -> dict[str, float]:
    broker.start()
    try:
        add_user(broker)
        run_workers(broker, min(scale.warm_up_s, 5.0))  # Java's compiler
        return {ROW: run_workers(broker, scale.seconds) / scale.seconds}
    finally:
        broker.stop()


def add_user(broker: Contender) -> None:
    admin = AdminClient(
        {
            "bootstrap.servers": f"127.0.0.1:{broker.port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": ADMIN,
            "sasl.password": PASSWORD,
        }
    )
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    wanted = UserScramCredentialUpsertion(USER, credential, PASSWORD.encode())
    for future in admin.alter_user_scram_credentials([wanted]).values():
        future.result(30)


def run_workers(broker: Contender, seconds: float) -> int:
    if seconds <= 0:
        return 0
    command = [sys.executable, "-m", "bench.logins", str(broker.port), str(seconds)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(WORKERS)]
    printed = [worker.communicate()[0] for worker in workers]
    if any(worker.returncode for worker in workers):
        raise BrokerError(f"logins failed on {broker.name}")
    return sum(map(int, printed))


def worker(port: int, seconds: float) -> int:
    login = ScramLogin(MECHANISM, USER, PASSWORD)
    deadline = time.perf_counter() + seconds
    count = 0
    while time.perf_counter() < deadline:
        log_in(port, login)
        count += 1
    return count


def log_in(port: int, login: ScramLogin) -> None:
    exchange = ScramClient(login, secrets.token_urlsafe(18))
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        mechanism = struct.pack(">h", len(MECHANISM)) + MECHANISM.encode()
        ask(connection, frames.request(SASL_HANDSHAKE, 1, mechanism, flexible=False))
        token: bytes | None = exchange.first()
        while token is not None:
            body = struct.pack(">i", len(token)) + token
            response = ask(connection, frames.request(SASL_AUTHENTICATE, 1, body, flexible=False))
            token = exchange.step(auth_bytes(response))


def ask(connection: socket.socket, frame: bytes) -> bytes:
    """The body of the response. Its first two bytes are the error code."""
    connection.sendall(frame)
    data = connection.recv(65536)
    while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
        more = connection.recv(65536)
        if not more:
            raise ConnectionError("the broker closed the connection")
        data += more
    body = data[8:]
    if error := struct.unpack_from(">h", body)[0]:
        raise ConnectionError(f"error {error}")
    return body


def auth_bytes(body: bytes) -> bytes:
    """Of a SaslAuthenticate response, version 1: error code, message, bytes, session lifetime."""
    message_bytes = max(struct.unpack_from(">h", body, 2)[0], 0)
    position = 4 + message_bytes
    size = struct.unpack_from(">i", body, position)[0]
    return body[position + 4 : position + 4 + size]


TRIALS = (Trial((ROW,), logins, warm_up=False, overrides=SETTINGS),)

if __name__ == "__main__":
    print(worker(int(sys.argv[1]), float(sys.argv[2])))
