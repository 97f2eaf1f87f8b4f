"""Java libraries that Spark needs beside its own: fetched once from Maven Central, checked, kept.

In: names of sets (`delta`, `postgresql`, `sqlite`, `mysql`, `s3`). Out: paths for `spark.jars`. Only HTTPS
and Python are needed: no Maven. `BARNABAS_MAVEN_URL` names a mirror; with `BARNABAS_OFFLINE=1` nothing is
fetched, and what is missing is named. Does not know: what the jars are for.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from barnabas.spark.s3_jars import S3_JARS

CENTRAL = "https://repo1.maven.org/maven2"
MIRROR = "BARNABAS_MAVEN_URL"
OFFLINE = "BARNABAS_OFFLINE"
FETCH_TIMEOUT_S = 60.0
CHUNK_BYTES = 1 << 16

DELTA_VERSION = "4.4.0"


class JarError(Exception):
    """A library cannot be had; the message says which, and what to do."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One file of Maven Central, by its coordinates and the checksum it must have."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def address(self) -> str:
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file_name}"


SETS: dict[str, tuple[Jar, ...]] = {
    "delta": (
        Jar(
            "io.delta", "delta-spark_4.2_2.13", DELTA_VERSION,
            "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
        ),
        Jar(
            "io.delta", "delta-storage", DELTA_VERSION,
            "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
        ),
        Jar(
            "io.delta", "delta-kernel-api", DELTA_VERSION,
            "ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11",
        ),
        Jar(
            "io.delta", "delta-kernel-defaults", DELTA_VERSION,
            "225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b",
        ),
        Jar(
            "io.delta", "delta-kernel-unitycatalog", DELTA_VERSION,
            "cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa",
        ),
    ),
    "postgresql": (
        Jar(
            "org.postgresql", "postgresql", "42.7.14",
            "73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c",
        ),
    ),
    "sqlite": (
        Jar(
            "org.xerial", "sqlite-jdbc", "3.53.4.0",
            "bcb1f51e36f940867e83342f9efbf5968ac44a6bef4d397bb4af7b17b45cd2fb",
        ),
    ),
    "mysql": (
        Jar(
            "com.mysql", "mysql-connector-j", "9.5.0",
            "f2ca3dfaf00d4aa311470db7ea3051962944ba0cb60005a2f75467549c39f425",
        ),
    ),
    "s3": tuple(Jar(*each) for each in S3_JARS),
}  # fmt: skip

Say = Callable[[str], None]


def cache_folder(name: str) -> Path:
    """The folder that keeps a set of jars."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "barnabas" / name


def jars(*names: str, say: Say | None = None) -> list[Path]:
    """The files of these sets; those that are not here yet are fetched."""
    return [jar_path(jar, say or on_terminal) for name in names for jar in SETS[name]]


def missing(names: Iterable[str]) -> list[Jar]:
    """Jars that would have to be fetched."""
    return [jar for name in names for jar in SETS[name] if not place(jar).exists()]


def place(jar: Jar) -> Path:
    return cache_folder("jars") / jar.file_name


def jar_path(jar: Jar, say: Say) -> Path:
    path = place(jar)
    if path.exists():
        return path
    address = f"{os.environ.get(MIRROR, CENTRAL).rstrip('/')}/{jar.address}"
    if os.environ.get(OFFLINE, "") not in ("", "0"):
        raise JarError(f"{path} is missing and {OFFLINE} is set: fetch {address} and put it there")
    path.parent.mkdir(parents=True, exist_ok=True)
    # Beside its place and renamed: a file that is there is whole, whoever else fetches it now.
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as out:
        try:
            found = download(address, out.write, say, jar.file_name)
            if found != jar.sha256:
                raise JarError(f"{address} has the checksum {found}, {jar.sha256} was expected")
            Path(out.name).rename(path)
        except (OSError, urllib.error.URLError) as error:
            raise JarError(
                f"{jar.file_name} cannot be fetched from {address}: {error}; set {MIRROR} to a mirror, or put"
                f" the file into {path.parent}"
            ) from error
        finally:
            Path(out.name).unlink(missing_ok=True)
    return path


def download(address: str, write: Callable[[bytes], object], say: Say, name: str) -> str:
    """The SHA-256 of what was fetched and written."""
    digest = hashlib.sha256()
    done = 0
    with urllib.request.urlopen(address, timeout=FETCH_TIMEOUT_S) as response:
        total = int(response.headers.get("Content-Length") or 0)
        shown = -1
        while data := response.read(CHUNK_BYTES):
            digest.update(data)
            write(data)
            done += len(data)
            percent = done * 100 // total if total else 0
            if percent // 10 > shown:
                shown = percent // 10
                say(f"fetching {name}: {done / 1e6:.1f} of {total / 1e6:.1f} MB")
    return digest.hexdigest()


def on_terminal(line: str) -> None:
    """A line that the next one overwrites, where somebody looks; else nothing."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
