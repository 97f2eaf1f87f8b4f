"""Sources with schemas of a registry: the file, the version that tables follow, and who judges drift."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from barnabas.engine.errors import NeedsDecision, SourceUnavailable
from barnabas.pipeline.file.reading import FileProblems, read_text
from barnabas.pipeline.file.writing import to_yaml
from barnabas.pipeline.ingest import registry_versions, schemas
from barnabas.pipeline.spec.model import Drift, Format, Schema, TopicSource
from registry_stub import Registry, registry

V1 = {"type": "record", "name": "O", "fields": [{"name": "id", "type": "long"}]}
V2 = {
    "type": "record",
    "name": "O",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string", "default": ""}],
}


@pytest.fixture
def there() -> Iterator[Registry]:
    with registry() as found:
        yield found


def source_of(there: Registry, version: int = 0) -> TopicSource:
    schema = Schema(registry=there.url, version=version, registry_settings={"max.retries": "0"})
    return TopicSource(
        name="orders",
        bootstrap_servers="localhost:9092",
        subscribe="orders",
        format=Format.AVRO,
        schema=schema,
    )


def test_columns_come_from_the_registered_schema(there: Registry) -> None:
    there.add("orders-value", V1)
    there.add("orders-value", V2)
    assert schemas.declared_ddl(source_of(there)) == "`id`: bigint, `note`: string"
    assert schemas.declared_ddl(source_of(there, version=1)) == "`id`: bigint"
    other = replace(source_of(there), schema=replace(source_of(there).schema, subject="missing"))
    with pytest.raises(NeedsDecision, match="did not give the latest version of missing"):
        schemas.declared_ddl(other)


def test_a_start_finds_the_version_that_the_tables_have(there: Registry) -> None:
    there.add("orders-value", V1)
    there.add("orders-value", V2)
    source = source_of(there)
    assert registry_versions.at_start(source, []).schema.version == 2
    assert registry_versions.at_start(source, [["ID", "_offset"]]).schema.version == 1
    assert registry_versions.at_start(source, [["id", "note"], ["id"]]).schema.version == 1
    assert registry_versions.at_start(source, [["other"]]).schema.version == 2
    assert registry_versions.at_start(source_of(there, version=1), [["id", "note"]]).schema.version == 1


@pytest.mark.parametrize(
    ("level", "drifts", "version"),
    [
        ("BACKWARD", [Drift.ADD], 2),
        ("FULL_TRANSITIVE", [Drift.ADD, Drift.RESCUE], 2),
        ("FORWARD", [Drift.ADD], None),
        ("FORWARD_TRANSITIVE", [Drift.ADD], None),
        ("NONE", [Drift.RESCUE], None),
        ("BACKWARD", [Drift.RESCUE], None),
    ],
)
def test_the_level_of_the_registry_judges_a_newer_version(
    there: Registry, level: str, drifts: list[Drift], version: int | None
) -> None:
    there.add("orders-value", V1)
    source = registry_versions.at_start(source_of(there), [])
    assert registry_versions.newer(source, drifts) is None
    there.add("orders-value", V2)
    there.levels["orders-value"] = level
    found = registry_versions.newer(source, drifts)
    assert (found.schema.version if found is not None else None) == version


@pytest.mark.parametrize(("level", "drift"), [("NONE", Drift.ADD), ("BACKWARD", Drift.STOP)])
def test_a_person_decides_where_nothing_is_promised(there: Registry, level: str, drift: Drift) -> None:
    there.add("orders-value", V1)
    source = registry_versions.at_start(source_of(there), [])
    there.add("orders-value", V2)
    there.levels["orders-value"] = level
    with pytest.raises(NeedsDecision, match="orders-value has version 2, the tables have version 1"):
        registry_versions.newer(source, [drift])


def test_a_registry_that_does_not_answer_is_tried_again(there: Registry) -> None:
    there.add("orders-value", V1)
    there.is_broken = True
    with pytest.raises(SourceUnavailable, match="the latest version of orders-value"):
        registry_versions.at_start(source_of(there), [])
    assert registry_versions.newer(source_of(there, version=1), [Drift.ADD]) is None


FILE = """
name: shop
lake: ./lake
sources:
  orders:
    topic: {bootstrap.servers: localhost:9092, subscribe: orders}
    format: protobuf
    schema:
      registry: http://localhost:8081
      subject: orders-value
      version: 3
      message: shop.Order
      settings: {basic.auth.user.info: "${env:REGISTRY_LOGIN}"}
staging:
  orders: {source: orders}
"""


def test_the_file_names_registry_subject_and_version() -> None:
    pipeline = read_text(FILE)
    schema = pipeline.sources[0].schema
    assert (schema.registry, schema.subject, schema.version) == ("http://localhost:8081", "orders-value", 3)
    assert schema.message == "shop.Order"
    assert "REGISTRY_LOGIN" not in repr(schema)
    again = read_text(to_yaml(pipeline))
    assert again.sources[0].schema == schema


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("version: 3", "version: latest", None),
        ("version: 3", "version: newest", "version"),
        ("version: 3", "version: 0", "version"),
        ("format: protobuf", "format: csv", "sources.orders.format"),
        ("subscribe: orders", "pattern: o.*", None),
        ("subject: orders-value\n      ", "", None),
        ("subject: orders-value", "subjekt: orders-value", "subjekt"),
        ('"${env:REGISTRY_LOGIN}"', "ada:secret", "settings"),
    ],
)
def test_mistakes_in_the_file_are_found(old: str, new: str, problem: str | None) -> None:
    assert old in FILE
    if problem is None:
        read_text(FILE.replace(old, new))
        return
    with pytest.raises(FileProblems) as problems:
        read_text(FILE.replace(old, new))
    assert any(problem in one.path for one in problems.value.problems)


def test_a_subject_is_needed_where_no_single_topic_names_it() -> None:
    text = FILE.replace("subject: orders-value\n      ", "").replace("subscribe: orders", 'subscribe: "a,b"')
    with pytest.raises(FileProblems) as problems:
        read_text(text)
    assert [one.path for one in problems.value.problems] == ["sources.orders.schema.subject"]
