"""Ships our package to executors, and checks that they can run it.

In: a session on a cluster or of Spark Connect. Out: executors that have our source, our sink and the
functions of pipelines, or an error that says what to change. Executors need Python of the same minor version
and pyspark; nothing of ours. Does not know: what is run.
"""

from __future__ import annotations

import json
import platform
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.engine.shipping.archive import NAME, archive, package_folder, python_tag
from barnabas.engine.shipping.distributions import PROVIDED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AUTO, NONE = "auto", "none"
PROBES = 4  # tasks of the probe: a few executors stand for all
OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH|different version", re.IGNORECASE)
NO_PYTHON = re.compile(r'Cannot run program "([^"]+)"')
NO_PYSPARK = re.compile(r"No module named '?pyspark")

# Runs on executors that have nothing of ours, so it travels as text and not by reference. `content` digests
# the files of the package like nothing else: it also runs here, to compare.
PROBE = '''
def content():
    """The digest of the files of an installed barnabas; empty if there is none."""
    import hashlib
    import importlib.util
    import pathlib

    spec = importlib.util.find_spec("barnabas")
    if spec is None or not spec.origin:
        return ""
    found = hashlib.sha256()
    folder = pathlib.Path(spec.origin).parent
    for path in sorted(folder.rglob("*.py")):
        found.update(str(path.relative_to(folder)).encode() + b"\\0" + path.read_bytes())
    return found.hexdigest()


class LateModuleFinder:
    """Finds modules in folders of the path that came to exist after Python had looked for them: this worker
    may be used again when the archive is there."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        import importlib.machinery
        import os
        import sys

        cache = sys.path_importer_cache
        late = [each for each in list(cache) if cache[each] is None and os.path.isdir(each)]
        for each in late:
            del cache[each]
        return importlib.machinery.PathFinder.find_spec(name, path, target) if late else None


def probe(number):
    import importlib.util
    import json
    import platform
    import socket
    import sys

    missing = [name for name in PROVIDED if importlib.util.find_spec(name) is None]
    if missing and not any(type(each).__name__ == "LateModuleFinder" for each in sys.meta_path):
        sys.meta_path.append(LateModuleFinder())
    return json.dumps({
        "host": socket.gethostname(),
        "python": "%d.%d" % sys.version_info[:2],
        "executable": sys.executable,
        "platform": (platform.system() + "-" + platform.machine()).lower(),
        "missing": missing,
        "content": content(),
    })
'''


class PackageError(Exception):
    """Executors cannot run our code; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class ExecutorFacts:
    """Report of one Python worker of an executor about itself."""

    host: str
    python: str
    executable: str
    platform: str
    missing: tuple[str, ...]
    content: str


def probe_functions() -> dict[str, Any]:
    """The functions of PROBE. Their module is `__main__`, so that they are pickled as code."""
    names: dict[str, Any] = {"__name__": "__main__", "PROVIDED": PROVIDED}
    exec(PROBE, names)
    return names


def executor_facts(spark: SparkSession) -> list[ExecutorFacts]:
    """Ask a few executors. PackageError if their Python cannot run functions of this one."""
    from pyspark.sql.functions import col, udf

    ask = udf(probe_functions()["probe"], "string", useArrow=False)
    try:
        rows = spark.range(0, PROBES, 1, PROBES).select(ask(col("id")).alias("facts")).collect()
    except Exception as error:
        raise explained(error) from error
    found = (json.loads(row["facts"]) for row in rows)
    return list({ExecutorFacts(**{**each, "missing": tuple(each["missing"])}) for each in found})


def explained(error: Exception) -> PackageError:
    text = str(error)
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    advice = (
        f"install Python {here} with pyspark on the machines of the cluster, name it with the setting"
        f" spark.pyspark.python (now: python{here} of their PATH), or run this process with their version"
    )
    if OTHER_PYTHON.search(text):
        seen = re.search(r"different version[^\d]*([\d.]+)", text) or re.search(r"worker[^\d]*(3\.\d+)", text)
        which = f"Python {seen[1].rstrip('.')}" if seen is not None else "another version of Python"
        return PackageError(f"executors run {which}, this process runs Python {here}: {advice}")
    if (command := NO_PYTHON.search(text)) is not None:
        return PackageError(f"executors cannot run {command[1]}: {advice}")
    if NO_PYSPARK.search(text):
        return PackageError(f"the Python of executors has no pyspark: {advice}")
    return PackageError(f"executors do not run Python functions: {' '.join(text.split())[:400]}")


def check(facts: Sequence[ExecutorFacts]) -> None:
    """PackageError if compiled libraries of this machine cannot run on the executors."""
    here = (f"{platform.system()}-{platform.machine()}").lower()
    for each in facts:
        if each.platform != here:
            raise PackageError(
                f"executor {each.host} is {each.platform}, this machine is {here}: libraries of one do not"
                " run on the other. Make the archive on a machine like the executors (barnabas engine package"
                " --output FILE) and name it with the setting spark.barnabas.package, or install"
                ' "barnabas[spark]" on executors and set spark.barnabas.package to none'
            )


def ship(spark: SparkSession, package: str = AUTO, *, is_connect: bool = False) -> Path | None:
    """Make our package importable on executors. None if they have the same one already.

    `package` is `auto`, `none` (executors have it) or the path of an archive that was made elsewhere."""
    if package == NONE:
        return None
    if package != AUTO:
        path = Path(package).expanduser()
        if not path.is_file():
            raise PackageError(f"spark.barnabas.package is {package}: there is no such file")
    else:
        facts = executor_facts(spark)
        if all(each.content == probe_functions()["content"]() for each in facts):
            return None
        check(facts)
        path = archive({name for each in facts for name in each.missing})
    attach(spark, path, is_connect=is_connect)
    return path


def attach(spark: SparkSession, path: Path, *, is_connect: bool) -> None:
    """Spark unpacks the archive on each executor, as a folder that is on the path of Python workers."""
    if is_connect:
        from barnabas.spark.source import BarnabasSource

        spark.addArtifacts(f"{path}#{NAME}", archive=True)
        spark.dataSource.register(BarnabasSource)  # the server has no module of ours to find it by
    else:
        spark.sparkContext.addArchive(f"{path}#{NAME}")


__all__ = ["ExecutorFacts", "PackageError", "archive", "package_folder", "python_tag", "ship"]
