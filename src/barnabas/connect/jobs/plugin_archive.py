"""Modules of `plugin.path` for executors that do not see the worker's folders.

In: a session on a cluster, the folders. Out: executors that import the modules, and find them as plugins.
Does not know: what the modules hold.
"""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.connect.plugins import ConnectError
from barnabas.connect.plugins.discovery import SHIPPED
from barnabas.engine.session import is_local, is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BYTES_MAX = 64 * 1024 * 1024
LEFT_OUT = frozenset({"__pycache__", "site-packages", "node_modules"})


def ship_plugins(spark: SparkSession, folders: Iterable[str]) -> Path | None:
    """Give executors the modules; None where they see the folders themselves, or there are no modules."""
    if not is_remote(spark) and is_local(spark):
        return None
    archive = archive_of([Path(each.strip()) for each in folders if each.strip()])
    if archive is None:
        return None
    if is_remote(spark):
        spark.addArtifacts(str(archive), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(archive))
    return archive


def archive_of(folders: Iterable[Path]) -> Path | None:
    """A zip file of all modules, named by its content. In case of two with one name the first folder wins,
    as on the path of the worker."""
    found: dict[str, bytes] = {}
    size = 0
    for folder in folders:
        for path in modules_of(folder):
            name = path.relative_to(folder).as_posix()
            if name not in found:
                found[name] = path.read_bytes()
                size += len(found[name])
            if size > BYTES_MAX:
                raise ConnectError(
                    f"plugin.path has more than {BYTES_MAX} bytes of modules, too many for executors: name a"
                    " folder with the plugins alone"
                )
    if not found:
        return None
    digest = hashlib.sha256()
    for name, data in sorted(found.items()):
        digest.update(name.encode() + b"\0" + data)
    target = Path(tempfile.mkdtemp(prefix="barnabas-connect-")) / f"{SHIPPED}{digest.hexdigest()[:16]}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in sorted(found.items()):
            out.writestr(name, data)
    return target


def modules_of(folder: Path) -> Iterator[Path]:
    """Modules in a folder, and whole packages with their data."""
    if not folder.is_dir():
        return
    for path in sorted(folder.glob("*.py")):
        yield path
    for package in sorted(each.parent for each in folder.glob("*/__init__.py")):
        for path in sorted(package.rglob("*")):
            if path.is_file() and not LEFT_OUT.intersection(path.relative_to(folder).parts):
                yield path
