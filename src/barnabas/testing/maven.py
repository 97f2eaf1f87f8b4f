"""Java libraries from Maven Central, for tests and comparisons. They are fetched once and kept between runs.

In: the name of a set of jars and its artifacts. Out: a folder with them and their dependencies.
Does not know: what the jars are for.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from barnabas.spark.jars import cache_folder

FETCH_TIMEOUT_S = 600.0

# Spark's poms name a mirror that not every network reaches.
SETTINGS = """<settings>
  <mirrors><mirror>
    <id>central-itself</id>
    <mirrorOf>gcs-maven-central-mirror</mirrorOf>
    <url>https://repo1.maven.org/maven2</url>
  </mirror></mirrors>
</settings>
"""


class MavenError(Exception):
    """The jars could not be fetched; the message says why."""


def fetch(name: str, artifacts: Sequence[str], excluded_groups: Sequence[str] = ()) -> Path:
    """The folder of a set. `artifacts` are group:artifact:version, and a classifier where there is one; the
    set is complete if the first one exists, which has no classifier."""
    folder = cache_folder(name)
    if jar(name, artifacts).exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        (Path(work) / "pom.xml").write_text(pom(name, artifacts))
        (Path(work) / "settings.xml").write_text(SETTINGS)
        command = ["mvn", "-q", "-B", "-U", "-gs", f"{work}/settings.xml", "-f", f"{work}/pom.xml"]
        command.append("dependency:copy-dependencies")
        if excluded_groups:
            command.append(f"-DexcludeGroupIds={','.join(excluded_groups)}")
        try:
            fetched = subprocess.run(
                [*command, "-DincludeScope=runtime", f"-DoutputDirectory={work}/jars"],
                capture_output=True,
                text=True,
                timeout=FETCH_TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MavenError(f"Maven cannot fetch {name}: {error}") from error
        if fetched.returncode != 0:
            first = (fetched.stdout + fetched.stderr).strip().splitlines()[:1]
            raise MavenError(f"Maven cannot fetch {name}: {' '.join(first)}")
        # Another process may have created the folder meanwhile; its content is the same.
        with contextlib.suppress(OSError):
            (Path(work) / "jars").rename(folder)
    return folder


def missing(name: str, artifacts: Sequence[str], excluded_groups: Sequence[str] = ()) -> str | None:
    """Fetch a set of jars. None if it can be used, otherwise the reason."""
    if shutil.which("java") is None:
        return "Java is not installed"
    if not jar(name, artifacts).exists() and shutil.which("mvn") is None:
        return "Maven is not installed"
    try:
        fetch(name, artifacts, excluded_groups)
    except MavenError as error:
        return str(error)
    return None


def jar(name: str, artifacts: Sequence[str]) -> Path:
    """The path of the first jar of a set. If it exists, the set is complete."""
    _, artifact, version = artifacts[0].split(":")
    return cache_folder(name) / f"{artifact}-{version}.jar"


def pom(name: str, artifacts: Sequence[str]) -> str:
    entries = []
    for each in artifacts:
        group, artifact, version, *classifiers = each.split(":")
        kind = "".join(f"<classifier>{classifier}</classifier>" for classifier in classifiers)
        entries.append(
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version>{kind}</dependency>"
        )
    return f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>barnabas</groupId><artifactId>{name}</artifactId><version>1</version>
  <dependencies>{"".join(entries)}</dependencies>
</project>
"""
