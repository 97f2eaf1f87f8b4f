"""`schemas`: subjects of a registry listed, checked, registered, compared, moved, turned into Python."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.avro.test_customer_contact import CAREFUL, FIRST, NAIVE
from schemas.served import instant_registry

from .conftest import Ran, RunTool


@pytest.fixture
def url() -> Iterator[str]:
    with instant_registry() as found:
        yield found


@pytest.fixture
def schemas(run_tool: RunTool, url: str) -> RunTool:
    def run(command: str, *arguments: str, input: str = "") -> Ran:
        return run_tool("barnabas", "schemas", command, "--registry-url", url, *arguments, input=input)

    return run


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "first.avsc").write_text(FIRST)
    (tmp_path / "naive.avsc").write_text(NAIVE)
    (tmp_path / "careful.avsc").write_text(CAREFUL)
    (tmp_path / "address.proto").write_text('syntax = "proto3"; message Address { string street = 1; }')
    (tmp_path / "order.proto").write_text(
        'syntax = "proto3"; import "address.proto"; message Order { int64 id = 1; Address to = 2; }'
    )
    (tmp_path / "customer.json").write_text(
        '{"title":"Customer","type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}'
    )
    return tmp_path


def test_a_build_stops_before_an_incompatible_schema_is_deployed(schemas: RunTool, files: Path) -> None:
    new = schemas("check", "--subject", "contacts-value", "--file", str(files / "first.avsc"))
    assert (new.status, new.lines) == (
        0,
        ["contacts-value has no versions yet: any schema may be registered"],
    )
    assert schemas("register", "--subject", "contacts-value", "--file", str(files / "first.avsc")).lines == [
        "contacts-value version 1 has id 1"
    ]

    refused = schemas("check", "--subject", "contacts-value", "--file", str(files / "naive.avsc"))
    assert refused.status == 1
    assert (
        refused.lines[0].startswith("NOT compatible with contacts-value")
        and "level BACKWARD" in refused.lines[0]
    )
    assert "'email_address' at path '/fields/1' in the new schema has no default value" in refused.output

    good = schemas(
        "check", "--subject", "contacts-value", "--file", str(files / "careful.avsc"), "--version", "1"
    )
    assert (good.status, good.output) == (0, "compatible with contacts-value (version 1, level BACKWARD)\n")


def test_a_file_that_is_no_schema_ends_with_the_place(schemas: RunTool, tmp_path: Path) -> None:
    (tmp_path / "bad.avsc").write_text('{"type":"record","name":"R","fields":[{"name":"a","type":"strin"}]}')

    refused = schemas("check", "--subject", "new", "--file", str(tmp_path / "bad.avsc"))

    assert refused.status == 1
    assert 'Undefined name: "strin"' in refused.errors and "/fields/0/type" in refused.errors
    missing = schemas("register", "--subject", "new", "--file", str(tmp_path / "missing.avsc"))
    assert missing.status == 1 and "no such file" in missing.errors


def test_subjects_versions_and_texts(schemas: RunTool, files: Path) -> None:
    schemas("register", "--subject", "address", "--file", str(files / "address.proto"))
    known = ("--reference", "address.proto,address,1")
    schemas("register", "--subject", "orders-value", "--file", str(files / "order.proto"), *known)
    schemas("register", "--subject", "keys", "--file", "-", "--type", "AVRO", input='{"type": "string"}')

    assert schemas("list").lines == ["address", "keys", "orders-value"]
    assert schemas("list", "--prefix", "ord").lines == ["orders-value"]
    listed = schemas("list", "--subject", "orders-value").lines
    assert listed[0].split() == ["VERSION", "ID", "TYPE", "REFERENCES"]
    assert listed[1].split()[:3] == ["1", "2", "PROTOBUF"] and "address.proto (address 1)" in listed[1]
    assert schemas("get", "--subject", "keys").output == '"string"\n'
    assert schemas("get", "--id", "3").output == '"string"\n'
    whole = json.loads(schemas("get", "--subject", "orders-value", "--version", "1", "--json").output)
    assert (whole["id"], whole["schemaType"], whole["references"][0]["subject"]) == (2, "PROTOBUF", "address")
    unknown = schemas("get", "--subject", "nobody")
    assert unknown.status == 1 and "40401" in unknown.errors


def test_versions_are_told_apart_in_words(schemas: RunTool, files: Path) -> None:
    for name in ("first", "careful"):
        schemas("register", "--subject", "contacts-value", "--file", str(files / f"{name}.avsc"))

    two = schemas("diff", "--subject", "contacts-value", "--version", "1", "--version", "2")
    assert "field email_address was renamed: it was mail, which is now its alias" in two.lines
    assert "the new schema reads data of the old one: yes" in two.lines
    file = schemas("diff", "--subject", "contacts-value", "--file", str(files / "naive.avsc"))
    assert "field consent: the default was removed" in file.lines
    wrong = schemas("diff", "--subject", "contacts-value", "--version", "1")
    assert wrong.status == 1 and "two of --version" in wrong.errors


@pytest.mark.parametrize("place", ["out", "out.jsonl"])
def test_schemas_move_to_another_registry(
    place: str, schemas: RunTool, run_tool: RunTool, files: Path, tmp_path: Path
) -> None:
    schemas("register", "--subject", "address", "--file", str(files / "address.proto"))
    known = ("--reference", "address.proto,address,1")
    schemas("register", "--subject", "a/b value", "--file", str(files / "order.proto"), *known)
    for name in ("first", "careful"):
        schemas("register", "--subject", "contacts", "--file", str(files / f"{name}.avsc"))
    exported = schemas("export", "--output", str(tmp_path / place))
    assert exported.lines == [f"4 versions are in {tmp_path / place}"]
    before = schemas("export", "--output", "-").lines

    with instant_registry() as other:
        added = run_tool(
            "barnabas", "schemas", "import", "--registry-url", other, "--file", str(tmp_path / place)
        )
        assert added.lines == ["4 versions are registered"]
        after = run_tool("barnabas", "schemas", "export", "--registry-url", other, "--output", "-").lines

    assert list(map(json.loads, after)) == list(map(json.loads, before))


def test_ids_are_kept_in_mode_import(schemas: RunTool, url: str, tmp_path: Path) -> None:
    from barnabas.schemas import SchemaRegistryClient

    entry = {"subject": "s", "version": 3, "id": 77, "schema": '"string"'}
    (tmp_path / "one.jsonl").write_text(json.dumps(entry) + "\n")
    refused = schemas("import", "--file", str(tmp_path / "one.jsonl"), "--keep-ids")
    assert refused.status == 1 and refused.errors.startswith("s version 3: ")
    with SchemaRegistryClient(url) as client:
        client.set_mode("IMPORT")

        assert schemas("import", "--file", str(tmp_path / "one.jsonl"), "--keep-ids").status == 0
        assert client.get_version("s").id == 77 and client.get_versions("s") == [3]


def test_a_broken_export_is_refused_before_anything_is_registered(schemas: RunTool, tmp_path: Path) -> None:
    good = {"subject": "s", "version": 1, "id": 1, "schema": '"string"'}
    (tmp_path / "x.jsonl").write_text(json.dumps(good) + '\n{"subject": "t"}\n')

    refused = schemas("import", "--file", str(tmp_path / "x.jsonl"))

    assert (
        refused.status == 1 and "x.jsonl line 2: subject, version, id and schema are needed" in refused.errors
    )
    assert schemas("list").lines == []


def test_dataclasses_of_a_subject_and_of_a_file(schemas: RunTool, files: Path, tmp_path: Path) -> None:
    schemas("register", "--subject", "contacts-value", "--file", str(files / "first.avsc"))

    schemas("codegen", "--subject", "contacts-value", "--output", str(tmp_path / "contacts.py"))
    printed = schemas("codegen", "--file", str(files / "customer.json")).output

    module = types.ModuleType("contacts")
    sys.modules["contacts"] = module
    exec((tmp_path / "contacts.py").read_text(), module.__dict__)
    data = {"customer_id": 1, "mail": "m", "phone": None, "channel": "MAIL"}
    assert module.CustomerContact.from_dict(data).to_dict() == data
    assert "class Customer:" in printed and "    id: int\n" in printed


def test_settings_come_from_a_file(run_tool: RunTool, url: str, tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text(
        f"bootstrap.servers=x:9092\nschema.registry.url={url}\nschema.registry.basic.auth.user.info=u:p\n"
    )

    assert (
        run_tool(
            "barnabas", "schemas", "list", "--command-config", str(tmp_path / "client.properties")
        ).status
        == 0
    )
    wrong = run_tool("barnabas", "schemas", "list", "--registry-url", "localhost")
    assert wrong.status == 1 and "no HTTP URL" in wrong.errors


def test_a_missing_library_is_named(run_tool: RunTool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)

    refused = run_tool("barnabas", "schemas", "list")

    assert (refused.status, refused.errors) == (1, "httpx is missing: pip install 'barnabas[schemas]'\n")


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (["get"], "one of --subject and --id is needed"),
        (["register", "--file", "x.avsc"], 'Missing required argument "[subject]"'),
        (["check", "--subject", "s"], 'Missing required argument "[file]"'),
        (["check", "--subject", "s", "--file", "x.avsc", "--reference", "a"], "NAME,SUBJECT,VERSION"),
        (["codegen"], "one of --subject and --file is needed"),
        (["export"], 'Missing required argument "[output]"'),
    ],
)
def test_what_is_missing_is_told(
    arguments: list[str], reason: str, run_tool: RunTool, tmp_path: Path
) -> None:
    (tmp_path / "x.avsc").write_text('"int"')
    given = [str(tmp_path / "x.avsc") if each == "x.avsc" else each for each in arguments]

    refused = run_tool("barnabas", "schemas", *given)

    assert refused.status == 1 and reason in refused.errors
