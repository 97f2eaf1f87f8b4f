"""The registry and the files that a tool's options name.

In: options. Out: a client of the registry, schemas. Does not know: what the tool does with them.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.frame.connecting import load_properties, resolved
from barnabas.cli.frame.parsing import ToolError, UsageError
from barnabas.schemas import Reference, Schema, SchemaRegistryClient
from barnabas.schemas.client.faces import run
from barnabas.schemas.model import ParsedSchema, ResolvedReference
from barnabas.schemas.parsing import parse

DEFAULT_URL = "http://localhost:8081"
URL_VARIABLE = "BARNABAS_REGISTRY"
PREFIX = "schema.registry."  # settings may be written as in files of Kafka's clients
SUFFIXES = {".avsc": "AVRO", ".proto": "PROTOBUF", ".json": "JSON"}
NAMES = {
    "url",
    "timeout",
    "max.retries",
    "retries.wait.ms",
    "retries.max.wait.ms",
    "cache.capacity",
    "cache.latest.ttl.sec",
}
PREFIXES = ("basic.auth.", "bearer.auth.", "ssl.")


def client_of(options: argparse.Namespace) -> SchemaRegistryClient:
    """A client by --registry-url and --command-config; properties of Kafka's clients are left out."""
    given = resolved(load_properties(options.command_config))
    properties = {name.removeprefix(PREFIX): value for name, value in given.items()}
    conf = {name: value for name, value in properties.items() if name in NAMES or name.startswith(PREFIXES)}
    if options.registry_url is not None:
        conf["url"] = options.registry_url
    conf.setdefault("url", os.environ.get(URL_VARIABLE, DEFAULT_URL))
    try:
        return SchemaRegistryClient(conf)
    except (ValueError, OSError) as error:
        raise ToolError(str(error)) from None


def subject_of(options: argparse.Namespace) -> str:
    if not options.subject:
        raise UsageError('Missing required argument "[subject]"')
    return str(options.subject)


def schema_of(options: argparse.Namespace) -> Schema:
    """The schema in --file, of --type or by the file's name."""
    if not options.file:
        raise UsageError('Missing required argument "[file]"')
    text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text(encoding="utf-8")
    schema_type = options.type or SUFFIXES.get(Path(options.file).suffix)
    if schema_type is None:
        raise UsageError(f"--type is needed: {options.file} ends with none of {', '.join(SUFFIXES)}")
    return Schema(text, schema_type, tuple(map(reference_of, options.reference)))


def reference_of(text: str) -> Reference:
    parts = text.rsplit(",", 2)
    if len(parts) != 3 or not parts[2].lstrip("-").isdigit():
        raise UsageError(f"--reference {text}: it is written NAME,SUBJECT,VERSION")
    return Reference(parts[0], parts[1], int(parts[2]))


def references_of(client: SchemaRegistryClient, schema: Schema) -> Sequence[ResolvedReference]:
    return run(client.core.resolved(schema)) if schema.references else ()


def parsed(client: SchemaRegistryClient, schema: Schema) -> ParsedSchema:
    return parse(schema.schema_type, schema.text, references_of(client, schema))
