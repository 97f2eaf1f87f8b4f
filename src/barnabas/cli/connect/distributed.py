"""connect-distributed: a worker of a cluster, under the name of Kafka's script."""

import argparse

from barnabas.cli.connect.starting import add_worker_arguments, run_worker
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser

EXAMPLES = ("worker.properties",)


def add_arguments(parser: ToolParser) -> None:
    add_worker_arguments(parser, has_files=False)


def run(options: argparse.Namespace, out: Output) -> int:
    return run_worker(options, out, is_distributed=True)
