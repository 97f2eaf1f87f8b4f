"""Servers that are jars of Maven Central: Cassandra, HDFS, and a server of MongoDB's protocol.

Each runs as a process of its own on loopback and ends with the process that started it. `available()` of a
server tells why it cannot run here.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from barnabas.testing import maven
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

HERE = Path(__file__).parent
START_S_MAX = 120.0
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# What Cassandra needs of Java 17's modules, as its own start script gives it.
EXPORTS = (
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "java.base/java.lang.ref",
    "jdk.unsupported/sun.misc",
)
OPENS = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "java.rmi/sun.rmi.transport.tcp",
    "jdk.management/com.sun.management.internal",
)


@dataclass(frozen=True)
class JavaServer:
    """A set of jars, and the main class of a server in them; `source` is compiled where it is ours."""

    name: str
    artifacts: tuple[str, ...]
    main: str
    source: str = ""
    flags: tuple[str, ...] = QUICK
    apart: tuple[str, ...] = ()  # what names of jars begin with that are not on the class path

    def available(self) -> str | None:
        """None if it can run here, otherwise the reason."""
        return maven.missing(self.name, self.artifacts)

    def class_path(self) -> str:
        jars = maven.fetch(self.name, self.artifacts)
        on_path = f"{jars}/*"
        if self.apart:
            on_path = ":".join(
                str(each) for each in jars.glob("*.jar") if not each.name.startswith(self.apart)
            )
        if not self.source:
            return on_path
        classes = jars / "test-classes"
        made = classes / self.source.replace(".java", ".class")
        if not made.exists() or made.stat().st_mtime < (HERE / self.source).stat().st_mtime:
            command = ["javac", "-cp", f"{jars}/*", "-d", str(classes), str(HERE / self.source)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            if done.returncode:
                raise RuntimeError(f"{self.source} does not compile: {done.stderr}")
        return f"{classes}:{on_path}"

    @contextlib.contextmanager
    def running(
        self,
        folder: Path,
        port: int,
        flags: Sequence[str],
        arguments: Sequence[str],
        address: str = "127.0.0.1",
    ) -> Iterator[subprocess.Popen[bytes]]:
        command = ["java", *self.flags, *flags, "-cp", self.class_path(), self.main, *arguments]
        log = folder / "log.txt"
        with log.open("ab") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=output, cwd=folder
            )
        try:
            wait_until(lambda: process.poll() is not None or answers(port, address), START_S_MAX)
            if process.poll() is not None:
                raise RuntimeError(f"{self.main} ended: {log.read_text()[-3000:]}")
            yield process
        finally:
            process.kill()
            process.communicate()


def answers(port: int, address: str = "127.0.0.1") -> bool:
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex((address, port)) == 0


MONGO = JavaServer(
    "mongo-java-server-h2-1.47.0",
    (
        "de.bwaldvogel:mongo-java-server:1.47.0",
        "de.bwaldvogel:mongo-java-server-h2-backend:1.47.0",
    ),
    "TestMongo",
    "TestMongo.java",
)
CASSANDRA = JavaServer(
    "cassandra-5.0.6",
    ("org.apache.cassandra:cassandra-all:5.0.6",),
    "org.apache.cassandra.service.CassandraDaemon",
)
HDFS = JavaServer(
    "hadoop-minicluster-3.4.2-jaxb",
    (
        "org.apache.hadoop:hadoop-client-minicluster:3.4.2",
        "org.slf4j:slf4j-simple:1.7.36",
        "javax.xml.bind:jaxb-api:2.3.1",
    ),
    "TestHdfs",
    "TestHdfs.java",
    (*QUICK, "-Xmx512m"),
)


class Hdfs:
    """A namenode and two datanodes. Everybody may write to `/data`."""

    def __init__(self, process: subprocess.Popen[bytes], home: Path, http_port: int, port: int) -> None:
        self._process = process
        self._home = home
        self._commands = 0
        self.url = f"hdfs://127.0.0.1:{port}"
        self.web_url = f"http://127.0.0.1:{http_port}"

    def stop_namenode(self) -> None:
        self._tell("stop")

    def start_namenode(self) -> None:
        self._tell("start")

    def _tell(self, word: str) -> None:
        done = self._home / f"done{self._commands}"
        self._commands += 1
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n".encode())
        self._process.stdin.flush()
        wait_until(done.exists, START_S_MAX)


@contextlib.contextmanager
def hdfs(more: Mapping[str, str] | None = None, flags: Sequence[str] = ()) -> Iterator[Hdfs]:
    """`more` are settings of Hadoop, `flags` those of Java."""
    http_port, port = free_ports(2)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        if more:
            lines = "".join(f"{name}={value}\n" for name, value in more.items())
            (home / "more.properties").write_text(lines)
        flags = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", *flags]
        with HDFS.running(home, http_port, flags, [folder, str(http_port), str(port)]) as process:
            wait_until(lambda: (home / "ready").exists() or process.poll() is not None, START_S_MAX)
            yield Hdfs(process, home, http_port, port)


@contextlib.contextmanager
def mongo(port: int = 0) -> Iterator[str]:
    """The connection string of a server in memory."""
    port = port or free_ports(1)[0]
    with tempfile.TemporaryDirectory() as home, MONGO.running(Path(home), port, ["-Xmx256m"], [str(port)]):
        yield f"mongodb://127.0.0.1:{port}/?directConnection=true"


class Restartable:
    """A server in a folder of its own that keeps its port and its data through `stop` and `start`."""

    is_needed = True

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.home = Path(self._folder.name)
        self._running = contextlib.ExitStack()

    def run(self) -> contextlib.AbstractContextManager[object]:
        raise NotImplementedError

    def start(self) -> None:
        self._running.enter_context(self.run())

    def stop(self) -> None:
        self._running.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._folder.cleanup()


class StoredMongo(Restartable):
    """A server of MongoDB's protocol with its data in a file, without change streams. It is not killed but
    told to end: the file is written with a delay."""

    def __init__(self) -> None:
        super().__init__()
        [self.port] = free_ports(1)
        self.uri = f"mongodb://127.0.0.1:{self.port}/?directConnection=true"

    @contextlib.contextmanager
    def run(self) -> Iterator[None]:
        arguments = [str(self.port), str(self.home / "data")]
        with MONGO.running(self.home, self.port, ["-Xmx256m"], arguments) as process:
            yield
            process.communicate(timeout=START_S_MAX)


class Cassandra(Restartable):
    """A node with one datacenter, `datacenter1`; `stop` kills it. With a keystore (PKCS #12, password
    `secret`) clients need TLS and a password, and the first user is `cassandra` with the password
    `cassandra`; with a truststore they need a certificate, too. A node with a first one joins its cluster,
    at an address of its own."""

    def __init__(
        self,
        keystore: str = "",
        truststore: str = "",
        flags: Sequence[str] = (),
        *,
        address: str = "127.0.0.1",
        first: Cassandra | None = None,
    ) -> None:
        super().__init__()
        self.port, inner, jmx = free_ports(3)
        self.address = address
        if first is not None:
            self.port, inner = first.port, first.inner  # nodes of a cluster have the same ports
        self.inner = inner
        home = str(self.home)
        settings = cassandra_settings(home, address, self.port, inner)
        if keystore:
            settings += secured(keystore, truststore)
        (self.home / "cassandra.yaml").write_text(settings)
        jars = maven.fetch(CASSANDRA.name, CASSANDRA.artifacts)
        agent = next(jars.glob("jamm-*.jar"))
        memory = ["-Xms512m", "-Xmx512m"]
        flags = [*flags, *memory, f"-javaagent:{agent}", "-Djdk.attach.allowAttachSelf=true"]
        flags += [f"--add-exports={each}=ALL-UNNAMED" for each in EXPORTS]
        flags += [f"--add-opens={each}=ALL-UNNAMED" for each in OPENS]
        self._flags = [
            *flags,
            f"-Dcassandra.config=file://{home}/cassandra.yaml",
            f"-Dcassandra.storagedir={home}/data",
            f"-Dcassandra.jmx.local.port={jmx}",
            "-Dcassandra-foreground=yes",
            f"-Dcassandra.ring_delay_ms={100 if first is None else 10_000}",
            "-Dcassandra.skip_wait_for_gossip_to_settle=0",
            "-Dcassandra.superuser_setup_delay_ms=0",
            "-Djava.io.tmpdir=" + home,
        ]

    def run(self) -> contextlib.AbstractContextManager[object]:
        return CASSANDRA.running(self.home, self.port, self._flags, [], self.address)


def secured(keystore: str, truststore: str) -> str:
    wants_certificate = f"""
  require_client_auth: true
  truststore: {truststore}
  truststore_password: secret
""".rstrip()
    return f"""
authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
client_encryption_options:
  enabled: true
  optional: false
  keystore: {keystore}
  keystore_password: secret
  store_type: PKCS12{wants_certificate if truststore else ""}
""".lstrip()


def cassandra_settings(home: str, address: str, port: int, inner: int) -> str:
    return f"""
cluster_name: test
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
commitlog_sync: periodic
commitlog_sync_period: 1000ms
commitlog_disk_access_mode: legacy
data_file_directories: [{home}/data/data]
commitlog_directory: {home}/data/commitlog
saved_caches_directory: {home}/data/caches
hints_directory: {home}/data/hints
cdc_raw_directory: {home}/data/cdc
endpoint_snitch: SimpleSnitch
listen_address: {address}
rpc_address: {address}
auto_bootstrap: false
native_transport_port: {port}
storage_port: {inner}
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "127.0.0.1:{inner}"
""".lstrip()
