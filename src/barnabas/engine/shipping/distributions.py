"""Libraries that executors need beside Python and pyspark.

In: the libraries that this interpreter has. Out: their files. What pyspark itself needs (pyarrow, pandas,
numpy) is expected on executors, and is shipped only where it is missing. Does not know: Spark.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

# Libraries that code of ours imports on executors: clients, codecs, formats, functions of pipelines.
NEEDED = (
    "avro",
    "cramjam",
    "crc32c",
    "cronsim",
    "cryptography",
    "datasketches",
    "fastavro",
    "googleapis-common-protos",
    "httpx",
    "jsonschema",
    "numba",
    "orjson",
    "protobuf",
    "psycopg",
    "psycopg-binary",
    "pyjwt",
    "pymysql",
    "pyyaml",
    "referencing",
    "sqlglot",
)
# Libraries that pyspark needs on executors. Import names.
PROVIDED = ("numpy", "pandas", "pyarrow")
PROVIDED_DISTRIBUTIONS = frozenset(
    {*PROVIDED, "pyspark", "py4j", "python-dateutil", "pytz", "six", "tzdata", "setuptools", "pip"}
)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
EXTRA = re.compile(r"\bextra\s*==")
SKIPPED = re.compile(
    r"(^|/)(__pycache__|tests?|testing)/|\.(pyc|pyi|pyx|pxd|h|c|lib|nbi|nbc)$|\.dist-info/(?!METADATA)"
)
KEPT = re.compile(r"(^|/)numba/(testing)/|(^|/)numpy/testing/")


@dataclass(frozen=True, slots=True)
class ShippedFile:
    name: str  # in the archive
    path: Path

    def under(self, folder: str) -> ShippedFile:
        return ShippedFile(f"{folder}/{self.name}", self.path)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(names: Iterable[str], without: frozenset[str] = frozenset()) -> list[Distribution]:
    """These distributions and all that they require, as far as they are installed here, sorted by name."""
    found: dict[str, Distribution] = {}
    waiting = [normal(name) for name in names]
    while waiting:
        name = waiting.pop()
        if name in found or name in without:
            continue
        try:
            here = distribution(name)
        except PackageNotFoundError:
            continue  # of an extra that is not installed, or of another platform
        found[name] = here
        for requirement in here.requires or ():
            match = NAME.match(requirement)
            if match is not None and not EXTRA.search(requirement):
                waiting.append(normal(match[0]))
    return [found[name] for name in sorted(found)]


def files_of(found: Distribution) -> Iterator[ShippedFile]:
    """The files of a distribution that are needed to import it."""
    for each in found.files or ():
        name = each.as_posix()
        if name.startswith(("..", "/")) or (SKIPPED.search(name) and not KEPT.search(name)):
            continue
        path = Path(str(each.locate()))
        if path.is_file():
            yield ShippedFile(name, path)


def package_files(package: Path) -> list[ShippedFile]:
    """The modules and data of one package's folder, sorted by name."""
    return [
        ShippedFile(path.relative_to(package).as_posix(), path)
        for path in sorted(package.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]


def digest(package: Path, libraries: Iterable[Distribution]) -> str:
    """Identifies the content: every byte of the package, and the record of hashes of each library."""
    found = hashlib.sha256()
    for each in package_files(package):
        found.update(f"{each.name}\0".encode())
        found.update(hashlib.sha256(each.path.read_bytes()).digest())
    for library in libraries:
        found.update(f"{library.metadata['Name']} {library.version}\0".encode())
        found.update((library.read_text("RECORD") or "").encode())
    return found.hexdigest()
