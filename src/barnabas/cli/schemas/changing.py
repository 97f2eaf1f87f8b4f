"""schemas register, schemas check: a file and a subject.

In: options. Out: the id, or the verdict. Does not know: the rules of compatibility; the registry decides.
"""

import argparse

from barnabas.cli.frame.output import Output
from barnabas.cli.schemas.registry import client_of, parsed, schema_of, subject_of
from barnabas.schemas import RegistryError, SchemaRegistryClient

INCOMPATIBLE = 1


def run_register(options: argparse.Namespace, out: Output) -> None:
    subject, schema = subject_of(options), schema_of(options)
    with client_of(options) as client:
        found = client.register_schema(subject, schema, options.normalize)
        version = found.version or client.lookup_schema(subject, schema, options.normalize).version
    out.line(f"{subject} version {version} has id {found.id}")


def run_check(options: argparse.Namespace, out: Output) -> int:
    subject, schema = subject_of(options), schema_of(options)
    with client_of(options) as client:
        parsed(client, schema)  # a text that is no schema is told with its place, even for a new subject
        if not has_versions(client, subject):
            out.line(f"{subject} has no versions yet: any schema may be registered")
            return 0
        level = client.get_config(subject, default_to_global=True).get("compatibilityLevel", "BACKWARD")
        verdict = client.test_compatibility(subject, schema, options.wanted_version, options.normalize)
    against = (
        f"version {options.wanted_version}" if options.wanted_version else "the versions that the level names"
    )
    if verdict.is_compatible:
        out.line(f"compatible with {subject} ({against}, level {level})")
        return 0
    out.line(f"NOT compatible with {subject} ({against}, level {level}):")
    for message in verdict.messages:
        out.line(f"  {message}")
    return INCOMPATIBLE


def has_versions(client: SchemaRegistryClient, subject: str) -> bool:
    try:
        return bool(client.get_versions(subject))
    except RegistryError as error:
        if error.is_not_found:
            return False
        raise
