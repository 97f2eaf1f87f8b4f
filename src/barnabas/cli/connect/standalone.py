"""connect-standalone: a single worker with the connectors of files, under the name of Kafka's script."""

import argparse

from barnabas.cli.connect.starting import add_worker_arguments, run_worker
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser

EXAMPLES = ("worker.properties connector.properties",)


def add_arguments(parser: ToolParser) -> None:
    add_worker_arguments(parser, has_files=True)


def run(options: argparse.Namespace, out: Output) -> int:
    return run_worker(options, out, is_distributed=False)
