"""Apache Iceberg in Java: a REST catalog on this machine, and a reader of tables.

The jars come from Maven Central, but those of Hadoop, which are pyspark's. `missing()` tells why they cannot
be used here.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from barnabas.testing import maven
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until
from stores.java_servers import QUICK, answers

VERSION, SDK = "1.10.1", "2.33.0"
NAME = f"iceberg-{VERSION}-rest"
ARTIFACTS = (
    f"org.apache.iceberg:iceberg-core:{VERSION}",
    f"org.apache.iceberg:iceberg-core:{VERSION}:tests",  # the servlet of a REST catalog
    f"org.apache.iceberg:iceberg-data:{VERSION}",
    f"org.apache.iceberg:iceberg-parquet:{VERSION}",
    f"org.apache.iceberg:iceberg-aws:{VERSION}",
    *(
        f"software.amazon.awssdk:{each}:{SDK}"
        for each in ("s3", "sts", "kms", "glue", "dynamodb", "apache-client")
    ),
    "org.eclipse.jetty:jetty-servlet:11.0.26",
    "org.xerial:sqlite-jdbc:3.50.3.0",
    "org.slf4j:slf4j-nop:2.0.17",
)
MAIN = "IcebergPrograms"
SOURCE = Path(__file__).parent / "java" / f"{MAIN}.java"
START_S_MAX = 60.0


def missing() -> str | None:
    return "javac is not installed" if shutil.which("javac") is None else maven.missing(NAME, ARTIFACTS)


def class_path() -> str:
    import pyspark

    jars = maven.fetch(NAME, ARTIFACTS)
    hadoop = sorted((Path(pyspark.__file__).parent / "jars").glob("hadoop-client-*.jar"))
    on_path = ":".join([f"{jars}/*", *map(str, hadoop)])
    classes = jars / "test-classes"
    made = classes / f"{MAIN}.class"
    if not made.exists() or made.stat().st_mtime < SOURCE.stat().st_mtime:
        command = ["javac", "-cp", on_path, "-d", str(classes), str(SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise RuntimeError(f"{SOURCE.name} does not compile: {done.stderr}")
    return f"{classes}:{on_path}"


def command(what: str, target: str, properties: Mapping[str, str]) -> list[str]:
    given = [f"{name}={value}" for name, value in properties.items()]
    return ["java", *QUICK, "-cp", class_path(), MAIN, what, target, *given]


@contextlib.contextmanager
def rest_catalog(folder: Path, warehouse: str, io: Mapping[str, str]) -> Iterator[str]:
    """The address of a REST catalog, whose tables lie at `warehouse`."""
    [port] = free_ports(1)
    properties = {
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "uri": f"jdbc:sqlite:{folder}/rest.db",
        "jdbc.schema-version": "V1",
        "warehouse": warehouse,
        **io,
    }
    log = folder / "rest.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            command("serve", str(port), properties), stdin=subprocess.PIPE, stdout=output, stderr=output
        )
    try:
        wait_until(lambda: process.poll() is not None or answers(port), START_S_MAX)
        if process.poll() is not None:
            raise RuntimeError(f"the catalog ended: {log.read_text()[-3000:]}")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.communicate()


def rows_in_java(table: str, properties: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rows of a table as Apache's reader sees them."""
    done = subprocess.run(command("read", table, properties), capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(f"{table} cannot be read: {done.stderr[-3000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]
