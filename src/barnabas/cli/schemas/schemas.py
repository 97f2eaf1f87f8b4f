"""schemas: list, get, register, check, compare, export and import schemas of a registry; dataclasses from
schemas.

In: a command, the registry's URL, files. Out: texts and verdicts. `check` ends with status 1 if the schema is
incompatible, so that a build can stop before a deployment.
"""

import argparse
from collections.abc import Callable
from importlib import import_module

from barnabas.cli.frame.connecting import add_command_config
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError

EXAMPLES = (
    "list --registry-url http://localhost:8081",
    "get --subject orders-value --version 2",
    "register --subject orders-value --file order.avsc",
    "check --subject orders-value --file order.avsc",
    "check --subject orders-value --file order.proto --reference address.proto,address,1",
    "diff --subject orders-value --version 1 --version 2",
    "diff --subject orders-value --file order.avsc",
    "export --output schemas/",
    "import --file schemas.jsonl",
    "codegen --subject orders-value --output orders.py",
    "codegen --file customer.json --type JSON",
)
TYPES = ("AVRO", "JSON", "PROTOBUF")
COMMANDS = {
    "list": "reading",
    "get": "reading",
    "register": "changing",
    "check": "changing",
    "diff": "comparing",
    "export": "moving",
    "import": "moving",
    "codegen": "comparing",
}
WANTED = "wanted_version"  # `version` is that of the tool
Command = Callable[[argparse.Namespace, Output], int | None]


def add_arguments(parser: ToolParser) -> None:
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def command(name: str, summary: str) -> argparse.ArgumentParser:
        found = commands.add_parser(name, help=summary, description=summary)
        found.add_argument(
            "--registry-url",
            metavar="URL,...",
            help="registries (default: $BARNABAS_REGISTRY, else localhost:8081)",
        )
        add_command_config(found)
        return found

    def with_file(found: argparse.ArgumentParser) -> None:
        found.add_argument("--file", metavar="FILE", help="a schema; - is standard input")
        found.add_argument(
            "--type", choices=TYPES, metavar="TYPE", help="AVRO, JSON or PROTOBUF (default: by the file)"
        )
        found.add_argument(
            "--reference",
            action="append",
            default=[],
            metavar="NAME,SUBJECT,VERSION",
            help="a schema that the file refers to; may be repeated",
        )

    found = command("list", "list subjects, or the versions of one")
    found.add_argument("--subject", metavar="SUBJECT", help="only its versions")
    found.add_argument("--prefix", metavar="PREFIX", help="only subjects that begin with it")
    found.add_argument("--deleted", action="store_true", help="deleted ones too")

    found = command("get", "print a schema, by subject and version or by id")
    found.add_argument("--subject", metavar="SUBJECT")
    found.add_argument("--version", dest=WANTED, metavar="VERSION", default="latest", help="default: latest")
    found.add_argument("--id", type=int, metavar="ID", help="instead of a subject")
    found.add_argument("--format", metavar="FORMAT", help="such as resolved (Avro) or serialized (Protobuf)")
    found.add_argument("--json", action="store_true", help="with subject, version, id and references")

    found = command("register", "register a file under a subject and print its id")
    found.add_argument("--subject", metavar="SUBJECT")
    found.add_argument("--normalize", action="store_true", help="in the registry's normal form")
    with_file(found)

    found = command("check", "check a file against a subject: status 0 if it is compatible, else 1")
    found.add_argument("--subject", metavar="SUBJECT")
    found.add_argument(
        "--version",
        dest=WANTED,
        metavar="VERSION",
        help="only against it (default: by the subject's level)",
    )
    found.add_argument("--normalize", action="store_true")
    with_file(found)

    found = command("diff", "tell in words what changed between two versions, or a version and a file")
    found.add_argument("--subject", metavar="SUBJECT")
    found.add_argument(
        "--version", dest=WANTED, action="append", default=[], metavar="VERSION", help="one or two of them"
    )
    with_file(found)

    found = command("export", "write subjects into a folder, or into one file with a version a line")
    found.add_argument(
        "--output", metavar="PLACE", help="a folder, or a file that ends with .jsonl; - is standard output"
    )
    found.add_argument("--prefix", metavar="PREFIX", help="only subjects that begin with it")

    found = command("import", "register what `export` wrote, references first")
    found.add_argument("--file", metavar="PLACE", help="a folder or a file of `export`")
    found.add_argument(
        "--keep-ids", action="store_true", help="give ids and versions again: needs mode IMPORT"
    )

    found = command("codegen", "print Python dataclasses of a schema")
    found.add_argument("--subject", metavar="SUBJECT")
    found.add_argument("--version", dest=WANTED, metavar="VERSION", default="latest", help="default: latest")
    found.add_argument("--output", metavar="FILE", help="write them into a file")
    with_file(found)


def run(options: argparse.Namespace, out: Output) -> int | None:
    from barnabas.schemas import RegistryError
    from barnabas.schemas.model import InvalidSchema

    if options.command is None:
        raise UsageError(f"one of {', '.join(COMMANDS)} is needed")
    module = import_module(f"barnabas.cli.schemas.{COMMANDS[options.command]}")
    command: Command = getattr(module, f"run_{options.command}")
    try:
        return command(options, out)
    except (RegistryError, InvalidSchema) as error:
        raise ToolError(str(error)) from None
    except ModuleNotFoundError as error:
        raise ToolError(f"{error.name} is missing: pip install 'barnabas[schemas]'") from None
