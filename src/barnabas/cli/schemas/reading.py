"""schemas list, schemas get: subjects, versions and texts.

In: options. Out: lines. Does not know: how a registry is asked.
"""

import argparse
import json

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import UsageError
from barnabas.cli.frame.table import table_lines
from barnabas.cli.schemas.registry import client_of
from barnabas.schemas import RegisteredSchema


def run_list(options: argparse.Namespace, out: Output) -> None:
    with client_of(options) as client:
        if options.subject is None:
            for subject in client.get_subjects(options.prefix, options.deleted):
                out.line(subject)
            return
        rows = []
        for version in client.get_versions(options.subject, options.deleted):
            found = client.get_version(options.subject, version, options.deleted)
            references = ", ".join(
                f"{one.name} ({one.subject} {one.version})" for one in found.schema.references
            )
            rows.append((str(version), str(found.id), found.schema.schema_type, references or "-"))
        for line in table_lines(("VERSION", "ID", "TYPE", "REFERENCES"), rows):
            out.line(line)


def run_get(options: argparse.Namespace, out: Output) -> None:
    if (options.id is None) == (options.subject is None):
        raise UsageError("one of --subject and --id is needed")
    with client_of(options) as client:
        if options.id is not None:
            found = client.get_schema(options.id, form=options.format)
        else:
            found = client.get_version(options.subject, options.wanted_version, form=options.format)
    out.line(json.dumps(as_json(found), ensure_ascii=False) if options.json else found.schema.text)


def as_json(found: RegisteredSchema) -> dict[str, object]:
    """A version as one object; `import` takes it."""
    numbers = {"subject": found.subject, "version": found.version, "id": found.id, "guid": found.guid}
    return {name: value for name, value in numbers.items() if value is not None} | {
        "schemaType": found.schema.schema_type,
        **found.schema.to_json(),
    }
