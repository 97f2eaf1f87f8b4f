"""Spark where nothing of the driver is seen, and nothing of ours is installed: a cluster, a server.

Master, worker and server run in a mount namespace, in which empty folders lie over the repository, the
driver's environment and its caches. Their Python has pyspark, and what pyspark itself needs. Loopback and one
folder for the lake are shared, as a network and a storage would be.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

REPOSITORY = Path(__file__).parents[2]
OF_PYSPARK = ("pyspark", "py4j", "pyarrow", "pandas", "numpy", "python-dateutil", "pytz", "six", "tzdata")


def why_not() -> str:
    """Why such a cluster cannot be made here; empty if it can."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "hiding files from workers needs root and unshare"
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0:
        return "mount namespaces are not allowed here"
    return ""


def executor_python(folder: Path, packages: Sequence[str] = OF_PYSPARK) -> Path:
    """An environment with pyspark and its own needs only: links to the files that the driver has."""
    from importlib.metadata import distribution

    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    subprocess.run([str(base), "-m", "venv", "--without-pip", str(folder)], check=True)
    [site] = folder.glob("lib/python*/site-packages")
    for name in packages:
        for each in distribution(name).files or ():
            source, target = Path(str(each.locate())), site / str(each)
            if ".." in each.parts or not source.is_file() or "__pycache__" in each.parts:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(source, target)
            except OSError:
                shutil.copyfile(source, target)
    for script in (site / "pyspark" / "bin").glob("*"):
        script.chmod(0o755)
    return folder


def hidden(folders: Sequence[Path], command: Sequence[str]) -> list[str]:
    """The command in a mount namespace in which these folders are empty."""
    wanted = [each for each in folders if each.is_dir()]
    wanted = [each for each in wanted if not any(other in each.parents for other in wanted)]
    mounts = " && ".join(f"mount -t tmpfs none '{each}'" for each in wanted)
    return ["unshare", "-m", "--propagation", "private", "sh", "-c", f'{mounts} && exec "$@"', "sh", *command]


class FarAway:
    """Starts programs of Spark where nothing of the driver is seen."""

    def __init__(self, folder: Path, driver: Sequence[Path], python: Path) -> None:
        """`driver` are folders of the driver."""
        [site] = python.glob("lib/python*/site-packages")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.home = site / "pyspark"
        self._environment = {
            "PATH": f"{python / 'bin'}:/usr/bin:/bin",
            "HOME": str(folder),
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            **{name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ},
        }
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "barnabas"
        self._hidden = [REPOSITORY, Path(sys.prefix), cache, *driver]
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, command: Sequence[str]) -> Path:
        """Start a program; the path of its log."""
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                hidden(self._hidden, command),
                env=self._environment,
                stdout=output,
                stderr=output,
                cwd=self.folder,
            )
        self._processes.append(process)
        return log

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:  # a busy machine: Spark's hooks are not done
                process.kill()
                process.wait()


@contextlib.contextmanager
def isolated_cluster(far: FarAway, cores: int = 2) -> Iterator[str]:
    """A master and a worker; the address of the master."""
    port, page, other = free_ports(3)
    run = str(far.home / "bin" / "spark-class")
    java = "org.apache.spark.deploy"
    master = f"spark://127.0.0.1:{port}"
    first = [run, f"{java}.master.Master", "--host", "127.0.0.1", "--port", str(port)]
    worker = [run, f"{java}.worker.Worker", "--cores", str(cores), "--memory", "2g", "--host", "127.0.0.1"]
    try:
        log = far.start("master", [*first, "--webui-port", str(page)])
        work = ["--work-dir", str(far.folder / "work")]
        far.start("worker", [*worker, "--webui-port", str(other), *work, master])
        wait_until(lambda: "Registering worker" in log.read_text(), 120, "a worker")
        yield master
    finally:
        far.stop()


@contextlib.contextmanager
def isolated_server(far: FarAway) -> Iterator[str]:
    """A server of Spark Connect with Delta's jars; its address."""
    from barnabas.engine.session_settings import DELTA
    from barnabas.spark import jars

    copies = []
    for path in jars.jars("delta"):
        copies.append(str(shutil.copyfile(path, far.folder / path.name)))
    [port] = free_ports(1)
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.jars": ",".join(copies),
        **DELTA,
    }
    command = [str(far.home / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "1g"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    try:
        log = far.start("connect", [*command, "spark-internal"])
        wait_until(lambda: "Spark Connect server started" in log.read_text(), 120, "a Spark Connect server")
        yield f"sc://127.0.0.1:{port}"
    finally:
        far.stop()


def skip_unless_possible() -> None:
    if reason := why_not():
        pytest.skip(reason)
