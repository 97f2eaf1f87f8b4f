"""ksql-test-runner: statements over records of a file, without a broker; results are compared with a file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser
from barnabas.cli.sql.shell_options import EXTRA

EXAMPLES = ("--sql-file statements.sql --input-file input.json --output-file output.json",)
NEEDS_ARGUMENTS = True


def add_arguments(parser: ToolParser) -> None:
    parser.add_argument("--sql-file", "-s", required=True, metavar="FILE", help="the statements")
    parser.add_argument("--input-file", "-i", required=True, metavar="FILE", help="records that come")
    parser.add_argument("--output-file", "-o", required=True, metavar="FILE", help="records that must follow")
    parser.add_argument("--extension-dir", "-e", metavar="FOLDER", help="Python modules of user functions")


def run(options: argparse.Namespace, out: Output) -> int:
    try:
        from barnabas.sql.errors import SqlError
        from barnabas.sql.functions.user import load_folder
        from barnabas.sql.testing.case_files import CaseError, first_difference
    except ModuleNotFoundError as error:
        raise ToolError(f"{error.name} is not installed: pip install 'barnabas[{EXTRA}]'") from None
    if options.extension_dir is not None:
        for problem in load_folder(Path(options.extension_dir)):
            raise ToolError(f"functions could not be imported: {problem}")
    try:
        different = first_difference(
            text_of(options.sql_file), json_of(options.input_file), json_of(options.output_file)
        )
    except (CaseError, SqlError) as error:
        raise ToolError(str(error)) from None
    if different is not None:
        out.line(f"Test failed: {different}")
        return 1
    out.line("Test passed!")
    return 0


def text_of(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ToolError(f"{file} cannot be read: {error}") from None


def json_of(file: str) -> Any:
    try:
        return json.loads(text_of(file))
    except ValueError as error:
        raise ToolError(f"{file} is no JSON: {error}") from None
