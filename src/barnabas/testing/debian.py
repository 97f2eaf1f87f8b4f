"""Programs of Debian's newest packages, for tests with servers that the machine's own Debian does not have.

In: the name of a package. Out: a folder with it and the libraries that it needs, and the command that runs a
program in it with these libraries. Nothing is installed. Fetched once and kept between runs.
Does not know: what the programs are for.
"""

from __future__ import annotations

import contextlib
import hashlib
import lzma
import platform
import re
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from barnabas.spark.jars import cache_folder

MIRROR = "https://deb.debian.org/debian/"
INDEX = "dists/sid/main/binary-amd64/Packages.xz"
LOADER = "ld-linux-x86-64.so.2"
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib", "usr/lib64", "lib64")
TIMEOUT_S = 120.0


class DebianError(Exception):
    """The packages could not be fetched; the message says why."""


@dataclass(frozen=True, slots=True)
class Package:
    name: str
    file: str
    sha256: str
    needs: tuple[str, ...]
    provides: tuple[str, ...]


def missing(package: str) -> str | None:
    """Fetch a package. None if it can be used, otherwise the reason."""
    if platform.machine() != "x86_64" or shutil.which("dpkg-deb") is None:
        return "needs Debian's tools on x86_64"
    try:
        fetch(package)
    except (DebianError, OSError) as error:
        return f"{package} cannot be fetched from Debian: {error}"
    return None


def fetch(package: str) -> Path:
    """The folder with a package and the libraries that it needs."""
    folder = cache_folder(f"debian-{package}")
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    index = dict(packages(lzma.decompress(content(INDEX)).decode()))
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        root = Path(work) / "root"
        root.mkdir()
        for each in closure(package, index):
            unpack(each, Path(work), root)
        with contextlib.suppress(OSError):  # another process may have created the folder meanwhile
            root.rename(folder)
    return folder


def command(package: str, program: str) -> list[str]:
    """The command line of a program of a fetched package, with its own libraries."""
    root = fetch(package)
    places = [root / each for each in LIBRARIES if (root / each).exists()]
    loader = next(root.rglob(LOADER))
    return [str(loader), "--library-path", ":".join(map(str, places)), str(root / program)]


def content(path: str) -> bytes:
    with urllib.request.urlopen(MIRROR + path, timeout=TIMEOUT_S) as response:
        found: bytes = response.read()
    return found


def packages(text: str) -> Iterator[tuple[str, Package]]:
    for part in text.split("\n\n"):
        fields = dict(re.findall(r"^([A-Za-z0-9-]+): (.*)$", part, re.MULTILINE))
        if "Package" in fields:
            found = Package(
                fields["Package"], fields["Filename"], fields["SHA256"],
                names(f"{fields.get('Depends', '')}, {fields.get('Pre-Depends', '')}"),
                names(fields.get("Provides", "")),
            )  # fmt: skip
            yield found.name, found


def names(text: str) -> tuple[str, ...]:
    """The first choice of each dependency."""
    return tuple(re.split(r"[ :(|]", each.strip())[0] for each in text.split(",") if each.strip())


def closure(package: str, index: dict[str, Package]) -> list[Package]:
    """A package and the libraries that it needs."""
    if package not in index:
        raise DebianError(f"there is no package {package}")
    providers = {name: each for each in index.values() for name in each.provides}
    found: dict[str, Package] = {}
    waiting = [package]
    while waiting:
        name = waiting.pop()
        each = index.get(name) or providers.get(name)
        if each is None or each.name in found or (name != package and not is_library(name)):
            continue
        found[each.name] = each
        waiting += each.needs
    return list(found.values())


def is_library(name: str) -> bool:
    return name.startswith("lib") and not name.startswith("libjson-perl")


def unpack(package: Package, work: Path, root: Path) -> None:
    data = content(package.file)
    if hashlib.sha256(data).hexdigest() != package.sha256:
        raise DebianError(f"{package.file} is damaged")
    path = work / "package.deb"
    path.write_bytes(data)
    done = subprocess.run(["dpkg-deb", "-x", str(path), str(root)], capture_output=True, text=True)
    if done.returncode:
        raise DebianError(done.stderr.strip())
