"""Apache Kafka from Maven Central as a reference: one node, for comparisons and measurements.

In: a folder, settings to override. Out: a running node with its address, Kafka's own tools, and small Java
programs on Kafka's class path. Needs Java 17 and Maven; `available()` tells what is missing. Imports no
third-party package.
Does not know: our broker.
"""

import atexit
import contextlib
import functools
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from barnabas.testing import maven
from barnabas.testing.ports import free_ports

VERSION = "4.3.1"
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 120.0
COMPILE_TIMEOUT_S = 300.0

# Tools run for a second: the fast compiler and the simplest collector start fastest.
TOOL_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-Dlog4j2.statusLoggerLevel=OFF")

COMPILER_FLAGS = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-J-Xmx256m")

NAME = f"apache-kafka-{VERSION}"
SERVER = (
    f"org.apache.kafka:kafka_2.13:{VERSION}",
    f"org.apache.kafka:kafka-tools:{VERSION}",
    "org.slf4j:slf4j-nop:1.7.36",  # disables the server's log
)
STREAMS_NAME = f"apache-kafka-streams-{VERSION}"
STREAMS = (f"org.apache.kafka:kafka-streams:{VERSION}",)  # includes a large database


class ApacheKafkaError(Exception):
    """Apache Kafka could not be fetched, formatted or started; the message holds what it printed."""


@functools.cache
def available() -> str | None:
    """None if Apache Kafka can run here, otherwise the reason."""
    return maven.missing(NAME, SERVER)


@functools.cache
def jars() -> Path:
    """The folder of Kafka's jars, fetched with Maven the first time."""
    return maven.fetch(NAME, SERVER)


@functools.cache
def streams_jars() -> Path:
    """The folder of Kafka Streams' jars, to use in addition to the others."""
    return maven.fetch(STREAMS_NAME, STREAMS)


_class_flags: tuple[str, ...] = ()  # flags of every JVM, see `share_classes`


def jvm(*flags: str) -> list[str]:
    """The start of a command that runs on Kafka's class path; main class and arguments follow."""
    return ["java", *_class_flags, *flags]


def share_classes() -> None:
    """From now on, JVMs map Kafka's classes from an archive instead of parsing jars, which halves their
    processor time; tests start hundreds of them. The archive is created once, beside the jars. Do not use
    this for measurements of Apache Kafka."""
    global _class_flags
    java = Path(os.path.realpath(shutil.which("java") or "java"))
    archive = jars().parent / f"{NAME}-{zlib.crc32(f'{java} {java.stat().st_mtime_ns}'.encode()):08x}.jsa"
    if not _class_flags and not archive.exists():
        _archive_classes(archive)
    if archive.exists():
        shared = (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:disable")
        _class_flags = (*shared, "-XX:TieredStopAtLevel=1")  # no JVM runs long enough for the slow compiler


def _archive_classes(archive: Path) -> None:
    """Run a node for a moment and store the classes that it has loaded."""
    global _class_flags
    made = archive.with_suffix(f".{os.getpid()}")
    node = ApacheKafka(heap="512M")
    try:
        _class_flags = (f"-XX:ArchiveClassesAtExit={made}", "-Xlog:disable")
        node.start()
        _class_flags = ()
        node.create_topic("classes")
        node.stop()
        if made.exists():
            made.replace(archive)
    finally:
        _class_flags = ()
        node.close()
        made.unlink(missing_ok=True)


def compiled(source: Path, folder: Path, *, streams: bool = False) -> list[str]:
    """Compile one Java source file into a folder. Returns the command to run it, without arguments."""
    paths = [f"{jars()}/*"] + ([f"{streams_jars()}/*"] if streams else [])
    done = subprocess.run(
        ["javac", *COMPILER_FLAGS, "-cp", os.pathsep.join(paths), "-d", str(folder), str(source)],
        capture_output=True,
        text=True,
        timeout=COMPILE_TIMEOUT_S,
    )
    if done.returncode != 0:
        said = done.stderr or done.stdout or f"javac ended with {done.returncode}"
        raise ApacheKafkaError(f"{source} cannot be compiled: {said}")
    return [*jvm(*TOOL_FLAGS), "-cp", os.pathsep.join([*paths, str(folder)]), source.stem]


def tool(
    class_name: str,
    *args: str,
    input: str | None = None,
    timeout: float = 60.0,
    java_flags: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """Runs one of Kafka's tools to its end, e.g. `org.apache.kafka.tools.TopicCommand --list ...`."""
    return _java([*java_flags, "-cp", f"{jars()}/*", class_name, *args], input, timeout)


def java_program(
    source: Path, *args: str, input: str | None = None, timeout: float = 60.0
) -> subprocess.CompletedProcess[str]:
    """Compiles and runs one Java source file on Kafka's class path."""
    return _java(["-cp", f"{jars()}/*", str(source), *args], input, timeout)


def _java(command: list[str], input: str | None, timeout: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*jvm(*TOOL_FLAGS), *command],
        input=input if input is not None else "",
        capture_output=True,
        text=True,
        timeout=timeout,
    )


class ApacheKafka:
    """One node, broker and controller, on free ports of 127.0.0.1.

    `data` is its log folder: a temporary one, or the caller's, which outlives the node.
    """

    def __init__(
        self,
        data: Path | None = None,
        overrides: Mapping[str, str] | None = None,
        heap: str = "1G",
        *,
        java_flags: Sequence[str] = (),
        format_arguments: Sequence[str] = (),
    ) -> None:
        self._work = Path(tempfile.mkdtemp(prefix="apache-kafka-"))
        self.data = data if data is not None else self._work / "data"
        self.heap = heap
        self._java_flags = tuple(java_flags)
        self._format_arguments = tuple(format_arguments)
        self.port, self.controller_port = free_ports(2)
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.properties = self._work / "server.properties"
        self.output = self._work / "output.txt"
        self._settings = self._base_settings() | dict(overrides or {})
        self._process: subprocess.Popen[bytes] | None = None

    def _base_settings(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
        }

    def override(self, settings: Mapping[str, str]) -> None:
        """Change settings for the next start."""
        self._settings |= settings

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ApacheKafkaError("Apache Kafka is not running")
        return self._process.pid

    def start(self) -> None:
        """Format an empty folder, start the node, and return when it responds."""
        if self._process is not None:
            raise ApacheKafkaError(f"Apache Kafka is running already, pid {self._process.pid}")
        self.properties.write_text("".join(f"{name}={value}\n" for name, value in self._settings.items()))
        if not (self.data / "meta.properties").exists():
            self._format()
        memory = (f"-Xmx{self.heap}", f"-Xms{self.heap}", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
        flags = (*memory, *self._java_flags, "-Djava.awt.headless=true", "-Dlog4j2.statusLoggerLevel=OFF")
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(
                [*jvm(*flags), "-cp", f"{jars()}/*", "kafka.Kafka", str(self.properties)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._work,
            )
        atexit.register(self.kill)
        self._wait_until_it_answers(self._process)

    def _format(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        arguments = ("-t", CLUSTER_ID, "-c", str(self.properties), *self._format_arguments)
        done = tool("kafka.tools.StorageTool", "format", *arguments)
        if done.returncode != 0:
            raise ApacheKafkaError(f"cannot format {self.data}: {done.stdout}{done.stderr}")

    def _wait_until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not answers("127.0.0.1", self.port):
            if process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise ApacheKafkaError(f"Apache Kafka did not start: {self.output.read_text()[-2000:]}")
            time.sleep(0.02)

    def stop(self) -> None:
        """A clean shutdown (SIGTERM); the folder stays and `start` may follow."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        atexit.unregister(self.kill)

    def kill(self) -> None:
        """kill -9."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            atexit.unregister(self.kill)

    def close(self) -> None:
        """Kill the node and remove its files, except a `data` folder of the caller."""
        self.kill()
        shutil.rmtree(self._work, ignore_errors=True)

    def __enter__(self) -> "ApacheKafka":
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.data.is_relative_to(self._work):
            self.kill()
        else:
            self.stop()
        self.close()

    def create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic with Kafka's own tool. It takes a second: for many topics, use a client."""
        settings = [part for key, value in (configs or {}).items() for part in ("--config", f"{key}={value}")]
        done = tool(
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", self.bootstrap, "--create", "--topic", name),
            *("--partitions", str(partitions), *settings),
        )
        if done.returncode != 0:
            raise ApacheKafkaError(f"cannot create topic {name}: {done.stdout}{done.stderr}")


def answers(host: str, port: int, timeout: float = 5.0, *, tls: ssl.SSLContext | None = None) -> bool:
    """Whether a broker responds to ApiVersions at this address."""
    request = struct.pack(">hhih", 18, 0, 1, -1)
    try:
        with contextlib.ExitStack() as stack:
            connection = stack.enter_context(socket.create_connection((host, port), timeout))
            if tls is not None:
                connection = stack.enter_context(tls.wrap_socket(connection, server_hostname=host))
            connection.sendall(struct.pack(">i", len(request)) + request)
            return len(connection.recv(4)) == 4
    except OSError:
        return False


if __name__ == "__main__":
    reason = available()
    print(reason or jars())
    sys.exit(1 if reason else 0)
