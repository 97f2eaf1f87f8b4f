"""Packs barnabas and the libraries that executors need into one archive, once for each content.

In: the installed package. Out: the path of a zip file in the cache, named by Python, platform and content.
Spark unpacks it on executors as the folder `barnabas` beside their work, which is on the path of Python
workers: so `import barnabas` finds it, and the package then finds its libraries in its own folder `_shipped`.
Libraries that pyspark needs and executors lack lie in `_lacking`, which is on the path from the beginning:
workers of Spark need them before anything of ours. Does not know: Spark.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from barnabas.engine.shipping.distributions import (
    NEEDED,
    PROVIDED_DISTRIBUTIONS,
    ShippedFile,
    closure,
    digest,
    files_of,
    normal,
    package_files,
)
from barnabas.spark.jars import cache_folder

FOLDER = "packages"
SHIPPED, LACKING = "_shipped", "_lacking"
NAME = "barnabas"  # the folder on executors: the name of the package
KEPT = 4  # archives in the cache
EPOCH = (1980, 1, 1, 0, 0, 0)
# Behind the libraries that executors have: those were made for them.
LINES = f"""

import sys as _sys

_sys.path += [path + "/{SHIPPED}" for path in __path__ if path + "/{SHIPPED}" not in _sys.path]
"""


def python_tag() -> str:
    """Archives hold compiled libraries: they work with this version of Python on this kind of machine."""
    return (
        f"python{sys.version_info[0]}.{sys.version_info[1]}-{platform.system()}-{platform.machine()}".lower()
    )


def package_folder() -> Path:
    import barnabas

    return Path(str(barnabas.__file__)).parent


def archive(extra: Iterable[str] = (), folder: Path | None = None) -> Path:
    """The archive of what is installed now; made if it is not in the cache. `extra` are distributions that
    executors lack although pyspark needs them."""
    wanted = sorted(extra)
    lacking = closure(wanted)
    names = frozenset(normal(each.metadata["Name"]) for each in lacking)
    libraries = [*lacking, *closure(NEEDED, PROVIDED_DISTRIBUTIONS | names)]
    package = package_folder()
    name = f"{NAME}-{python_tag()}-{digest(package, libraries)[:16]}.zip"
    path = (folder or cache_folder(FOLDER)) / name
    if path.exists():
        os.utime(path)
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    # Beside its place and renamed: a file that is there is whole.
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".new", delete=False) as out:
        try:
            folders = ((LACKING if each in lacking else SHIPPED, each) for each in libraries)
            shipped = [file.under(place) for place, found in folders for file in files_of(found)]
            write(out.name, contents(package, shipped))
            Path(out.name).chmod(0o644)
            Path(out.name).rename(path)
        finally:
            Path(out.name).unlink(missing_ok=True)
    forget_old(path.parent)
    return path


def contents(package: Path, libraries: Iterable[ShippedFile]) -> Iterator[tuple[str, bytes | Path]]:
    for each in package_files(package):
        if each.name == "__init__.py":
            yield each.name, each.path.read_bytes() + LINES.encode()
        else:
            yield each.name, each.path
    for each in libraries:
        yield each.name, each.path


def write(path: str, files: Iterable[tuple[str, bytes | Path]]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out:
        for name, content in files:
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            out.writestr(entry, content if isinstance(content, bytes) else content.read_bytes())


def forget_old(folder: Path) -> None:
    """Keep the archives that were used last."""
    found = sorted(folder.glob(f"{NAME}-*.zip"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in found[KEPT:]:
        path.unlink(missing_ok=True)
