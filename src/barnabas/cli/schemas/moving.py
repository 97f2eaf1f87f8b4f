"""schemas export, schemas import: versions of subjects as files.

In: a folder (a file a version) or one file (a JSON object a line). Out: the same, or registered versions.
Does not know: how a registry is asked.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, UsageError
from barnabas.cli.schemas.reading import as_json
from barnabas.cli.schemas.registry import client_of
from barnabas.schemas import RegisteredSchema, RegistryError, Schema, SchemaRegistryClient
from barnabas.schemas.client.faces import run

LINES = ".jsonl"


def run_export(options: argparse.Namespace, out: Output) -> None:
    if not options.output:
        raise UsageError('Missing required argument "[output]"')
    with client_of(options) as client:
        versions = all_versions(client, options.prefix)
        if options.output == "-":
            for one in versions:
                out.line(json.dumps(as_json(one), ensure_ascii=False))
            return
        place, count = Path(options.output), 0
        if place.suffix == LINES:
            with place.open("w", encoding="utf-8") as file:
                for one in versions:
                    file.write(json.dumps(as_json(one), ensure_ascii=False) + "\n")
                    count += 1
        else:
            for one in versions:
                folder = place / quote(one.subject or "", safe="")
                folder.mkdir(parents=True, exist_ok=True)
                text = json.dumps(as_json(one), ensure_ascii=False, indent=2)
                (folder / f"{one.version}.json").write_text(text + "\n", encoding="utf-8")
                count += 1
    out.line(f"{count} versions are in {place}")


def all_versions(client: SchemaRegistryClient, prefix: str | None) -> Iterator[RegisteredSchema]:
    for subject in sorted(client.get_subjects(prefix)):
        for version in sorted(client.get_versions(subject)):
            yield client.get_version(subject, version)


def run_import(options: argparse.Namespace, out: Output) -> None:
    if not options.file:
        raise UsageError('Missing required argument "[file]"')
    entries = list(read_entries(Path(options.file)))
    # By id: a schema was registered after those that it refers to, and before its later versions.
    entries.sort(key=lambda entry: (entry["id"], entry["subject"], entry["version"]))
    with client_of(options) as client:
        for entry in entries:
            add(client, entry, keep_ids=options.keep_ids)
    out.line(f"{len(entries)} versions are registered")


def add(client: SchemaRegistryClient, entry: dict[str, Any], *, keep_ids: bool) -> None:
    subject, schema = entry["subject"], Schema.from_json(entry)
    try:
        if keep_ids:
            run(client.core.import_version(subject, schema, entry["id"], entry["version"]))
        else:
            client.register_schema(subject, schema)
    except RegistryError as error:
        raise ToolError(f"{subject} version {entry['version']}: {error}") from None


def read_entries(place: Path) -> Iterator[dict[str, Any]]:
    if place.is_dir():
        for path in sorted(place.glob("*/*.json")):
            yield checked(path.read_text(encoding="utf-8"), str(path))
        return
    with place.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield checked(line, f"{place} line {number}")


def checked(text: str, where: str) -> dict[str, Any]:
    try:
        entry = json.loads(text)
    except ValueError as error:
        raise ToolError(f"{where} is no JSON: {error}") from None
    kinds = {"subject": str, "version": int, "id": int, "schema": str}
    if not isinstance(entry, dict) or not all(isinstance(entry.get(k), kind) for k, kind in kinds.items()):
        raise ToolError(
            f"{where}: subject, version, id and schema are needed, as `schemas export` writes them"
        )
    return entry
