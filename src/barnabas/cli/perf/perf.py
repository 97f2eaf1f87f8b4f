"""perf: measure producing, consuming and latency, as Kafka's performance tools do."""

import argparse
from types import ModuleType
from typing import Any

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser, UsageError
from barnabas.cli.perf import perf_consumer, perf_latency, perf_producer, perf_share_consumer

EXAMPLES = (
    "producer --topic load --num-records 1000000 --record-size 100 --throughput -1",
    "consumer --topic load --num-records 1000000",
    "latency --topic ping --num-records 5000 --producer-acks 1 --record-size 100",
)
KINDS: dict[str, ModuleType] = {
    "producer": perf_producer,
    "consumer": perf_consumer,
    "share-consumer": perf_share_consumer,
    "latency": perf_latency,
}


def add_arguments(parser: ToolParser) -> None:
    commands = parser.add_subparsers(dest="kind", metavar="|".join(KINDS), parser_class=ToolParser)
    for name, module in KINDS.items():
        examples = "\n".join(f"  barnabas perf {name} {line}" for line in module.EXAMPLES)
        summary = f"measure {name}"
        command = commands.add_parser(
            name, help=summary, description=summary, epilog=f"examples:\n{examples}"
        )
        command.strict = parser.strict
        module.add_arguments(command)
        parser.old_spellings |= command.old_spellings


def run(options: argparse.Namespace, out: Output) -> Any:
    if options.kind is None:
        raise UsageError(f"too few arguments: one of {', '.join(KINDS)} is needed")
    return KINDS[options.kind].run(options, out)
