"""Nodes of OpenSearch and of Elasticsearch on loopback, alone or as a cluster, from jars of Maven Central.

A node keeps its folder and its ports: it can be killed and started again. Their cores run without plugins but
the one for HTTP: no security, no templates of their own; Elasticsearch has no data streams then.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import zipfile
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
from tests.stores.java_servers import JavaServer

from barnabas.testing import maven
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

READY_S_MAX = 180.0
NETTY = "transport-netty4"
OPENSEARCH = JavaServer(
    "opensearch-node-2.19.3",
    (
        "org.opensearch:opensearch:2.19.3",
        "org.opensearch.plugin:transport-netty4-client:2.19.3",
        "org.apache.logging.log4j:log4j-core:2.21.0",
    ),
    "TestOpenSearch",
    "TestOpenSearch.java",
)
ELASTICSEARCH = JavaServer(
    "elasticsearch-node-8.19.21",
    (
        "org.elasticsearch:elasticsearch:8.19.21",
        f"org.elasticsearch.plugin:{NETTY}:8.19.21",
    ),
    "TestElasticsearch",
    "TestElasticsearch.java",
    apart=(NETTY, "netty-"),
)


class SearchNodes:
    def __init__(self, server: JavaServer, count: int = 1) -> None:
        self._server = server
        self._folder = tempfile.TemporaryDirectory()
        ports = free_ports(2 * count)
        self._ports = list(zip(ports[:count], ports[count:], strict=True))
        self._running: dict[int, contextlib.ExitStack] = {}

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port, _ in self._ports]

    def start(self, number: int) -> None:
        """Start a node; it may not have found the others yet."""
        port, inner = self._ports[number]
        home = Path(self._folder.name) / str(number)
        (home / "config").mkdir(parents=True, exist_ok=True)
        flags = ["-Xmx512m", f"-Dopensearch.path.home={home}", f"-Des.path.home={home}"]
        if self._server is ELASTICSEARCH:
            lay_out_module(maven.fetch(self._server.name, self._server.artifacts), home)
        others = ",".join(f"127.0.0.1:{each}" for _, each in self._ports)
        # A node of a cluster has its address as its name: the first manager is chosen by names.
        arguments = [str(home), str(port), str(inner), f"127.0.0.1:{inner}", others]
        stack = contextlib.ExitStack()
        stack.enter_context(self._server.running(home, port, flags, arguments))
        self._running[number] = stack

    def kill(self, number: int) -> None:
        self._running.pop(number).close()

    def wait(self, color: str = "yellow") -> None:
        """Wait until all running nodes are one cluster, and its indexes have at least this color."""
        path = f"/_cluster/health?wait_for_status={color}&wait_for_nodes={len(self._running)}&timeout=5s"

        def is_ready() -> bool:
            for number in self._running:
                try:
                    if httpx.get(self.urls[number] + path, timeout=20).status_code != 200:
                        return False
                except httpx.HTTPError:
                    return False
            return True

        wait_until(is_ready, READY_S_MAX)

    def __enter__(self) -> Self:
        try:
            for number in range(len(self._ports)):
                self.start(number)
            self.wait()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in list(self._running):
            self.kill(number)
        self._folder.cleanup()


def lay_out_module(jars: Path, home: Path) -> None:
    """The folder of Elasticsearch's module for HTTP, as its own archive has it."""
    module = home / "modules" / NETTY
    if module.exists():
        return
    (home / "lib").mkdir(exist_ok=True)
    (home / "plugins").mkdir(exist_ok=True)
    module.mkdir(parents=True)
    [jar] = jars.glob(f"{NETTY}-[0-9]*.jar")
    for each in (jar, *jars.glob("netty-*.jar")):
        shutil.copy(each, module)
    with zipfile.ZipFile(jar) as archive:
        told = archive.read(f"META-INF/es-plugins/{NETTY}/plugin-descriptor.properties").decode()
    # Without the name of a Java module the plugin is loaded as plain classes: so is the server here.
    kept = [line for line in told.splitlines() if not line.startswith("modulename")]
    (module / "plugin-descriptor.properties").write_text("\n".join(kept))
