"""schema-registry-start: `registry start` under the name of Confluent's script."""

import argparse

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser
from barnabas.cli.services.starting import REGISTRY, add_start_arguments, run_start

EXAMPLES = ("schema-registry.properties",)
NEEDS_ARGUMENTS = False


def add_arguments(parser: ToolParser) -> None:
    add_start_arguments(parser, REGISTRY)


def run(options: argparse.Namespace, out: Output) -> int:
    return run_start(options, out, REGISTRY)
