"""streams: run a topology on Spark, explain it, or reset its application.

In: the name of a topology (`module:attribute`), an application id, settings of Kafka Streams. Out: the
application runs until it is stopped; or how it would run; or what a reset deleted.
"""

import argparse

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError

EXAMPLES = (
    "run words:topology --application-id words --bootstrap-server localhost:9092",
    "run words:topology --application-id words --config processing.guarantee=exactly_once_v2",
    "run words:topology --application-id words --port 7070",
    "explain words:topology --application-id words",
    "explain words:topology --application-id words --as dot",
    "reset --application-id words --dry-run",
)


FORMS = ("text", "dot", "kafka")


def add_arguments(parser: ToolParser) -> None:
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def command(name: str, summary: str) -> argparse.ArgumentParser:
        found = commands.add_parser(name, help=summary, description=summary)
        found.add_argument(
            "--application-id", required=True, metavar="ID", help="its group and prefix of topics"
        )
        found.add_argument("--bootstrap-server", default="localhost:9092", metavar="HOST:PORT")
        found.add_argument(
            "--config", action="append", default=[], metavar="NAME=VALUE", help="a setting of Kafka Streams"
        )
        return found

    running = command("run", "run a topology until it is stopped")
    running.add_argument("topology", metavar="MODULE:ATTRIBUTE", help="where the topology is")
    running.add_argument("--standby", action="store_true", help="wait while another host runs it")
    running.add_argument("--port", type=int, metavar="N", help="answer interactive queries over HTTP")
    running.add_argument("--seconds", type=float, metavar="N", help="stop after so many seconds")
    explaining = command(
        "explain", "print the topology, and the road of each step: columns or record by record"
    )
    explaining.add_argument("topology", metavar="MODULE:ATTRIBUTE", help="where the topology is")
    explaining.add_argument("--as", dest="form", choices=FORMS, default="text", help="text, dot or kafka")
    resetting = command("reset", "delete internal topics, offsets and state of an application")
    resetting.add_argument("--dry-run", action="store_true", help="print what would be deleted")


def run(options: argparse.Namespace, out: Output) -> int | None:
    if options.command is None:
        raise UsageError("a command is needed: run, explain or reset")
    from barnabas.engine.lock import LakeIsBusy
    from barnabas.engine.upgrades import IncompatibleState
    from barnabas.plans.description import describe, dot
    from barnabas.plans.plan import PlanError
    from barnabas.settings.errors import SettingsError
    from barnabas.spark.basics.settings import OptionError
    from barnabas.streams.columns.roads import explain
    from barnabas.streams.run.application import reset_streams, run_streams
    from barnabas.streams.run.settings import optimization_of, streams_settings
    from barnabas.streams.run.topologies import OPTIMIZATION, TopologyError, load_plan

    given = pairs(options.config)
    try:
        if options.command == "run":
            run_streams(
                options.topology,
                options.application_id,
                options.bootstrap_server,
                given,
                port=options.port,
                standby=options.standby,
                seconds=options.seconds,
            )
            return None
        if options.command == "explain":
            forms = {"text": explain, "dot": dot, "kafka": describe}
            optimization = optimization_of(given.get(OPTIMIZATION, "none"))
            plan = load_plan(options.topology, options.application_id, optimization)
            out.line(forms[options.form](plan).rstrip())
            return None
        settings = streams_settings(options.application_id, options.bootstrap_server, given)
        verb = "would delete" if options.dry_run else "deleted"
        for line in reset_streams(settings, dry_run=options.dry_run):
            out.line(f"{verb} {line}")
    except (OptionError, TopologyError, PlanError, IncompatibleState, LakeIsBusy, SettingsError) as error:
        raise ToolError(str(error)) from error
    return None


def pairs(texts: list[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--config {text}: give NAME=VALUE")
        found[name.strip()] = value.strip()
    return found
