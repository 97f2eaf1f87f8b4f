"""schemas diff, schemas codegen: schemas of a registry or of a file, told or turned into Python.

In: options. Out: sentences, or source. Does not know: how schemas are compared or printed.
"""

import argparse
from pathlib import Path

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import UsageError
from barnabas.cli.schemas.registry import client_of, parsed, references_of, schema_of, subject_of


def run_diff(options: argparse.Namespace, out: Output) -> None:
    from barnabas.schemas.differences.telling import told

    subject = subject_of(options)
    wanted = list(options.wanted_version)
    if len(wanted) + (options.file is not None) > 2 or (len(wanted) < 2 and options.file is None):
        raise UsageError("two of --version, or one --version and a --file, are compared")
    with client_of(options) as client:
        sides = [client.get_version(subject, version).schema for version in wanted]
        if options.file is not None:
            sides = sides or [client.get_version(subject).schema]
            sides.append(schema_of(options))
        old, new = (parsed(client, side) for side in sides)
    for line in told(old, new):
        out.line(line)


def run_codegen(options: argparse.Namespace, out: Output) -> None:
    from barnabas.schemas.codegen.generating import generate

    if (options.file is None) == (options.subject is None):
        raise UsageError("one of --subject and --file is needed")
    with client_of(options) as client:
        schema = (
            schema_of(options)
            if options.file is not None
            else client.get_version(options.subject, options.wanted_version).schema
        )
        source = generate(schema.schema_type, schema.text, references_of(client, schema))
    if options.output is None:
        out.line(source.rstrip("\n"))
    else:
        Path(options.output).write_text(source, encoding="utf-8")
