"""Transcripts of Kafka's own tools: commands and their output.

    kafka-topics --bootstrap-server $BROKER --create --topic orders
    ----
    Created topic orders.

Lines after the command that start with `<` are its standard input. `!` marks standard error, `exit` a status
other than 0, and `(empty line)` an empty line. `member-joins --group G --topic T --client-id C`,
`share-member-joins` and `streams-member-joins` with the same options, `members-leave` and
`transaction --id I --topic T --partition 0,1 --end commit` are no tools: they start and stop clients that
live while the following tools run. `pytest tests/cli --record` records the transcripts again.
"""

import re
import shlex
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

FOLDER = Path(__file__).parent / "transcripts"
EMPTY = "(empty line)"

JAVA_CLASSES = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "kafka-streams-application-reset": "org.apache.kafka.tools.StreamsResetter",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-share-consumer-perf-test": "org.apache.kafka.tools.ShareConsumerPerformance",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
}

# Differences between the tools that are intended, or that vary between runs.
NOISE = re.compile(
    r"SLF4J|The consumer rebalance protocol \(KIP-848\)|^engine: |^\s*$|^New offset \(-?\d+\) is "
)
TRACE = re.compile(r"^\s+at |^\s+\.\.\. \d+ more|^Caused by: |^[a-z][\w.$]+(Exception|Error)(: |$)")
TO_ERRORS = re.compile(
    r"^(Error while executing (topic|client metrics) command : |Warning: --"
    r"|Option --\S+ (is|has been) deprecated)"
)
EXCEPTION = re.compile(r'(^Exception in thread "main" )?\b([a-z][\w.$]+\.\w+(Exception|Error): )+')
HINT = re.compile(
    r" \((see `|give |--broker-list takes ).*\)$| Enable debug logging for additional detail\.$"
)
BAD_BOOTSTRAP = re.compile(r"(?<=host1:9091,host2:9092) \(.*\)")
MOMENTS = (
    (re.compile(r"TopicId: \S{22}"), "TopicId: <id>"),
    (re.compile(r"directory\.id=\S{22}"), "directory.id=<id>"),
    (re.compile(r"CreateTime:\d{13}"), "CreateTime:<ms>"),
    (re.compile(r"Cluster ID: \S{22}"), "Cluster ID: <id>"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(?= )"), "<member>"),
    (re.compile(r"(?<=\s)[\w+/-]{22}(?= /)"), "<member>"),
    (re.compile(r"\$BROKER {2}\(1\) +"), "$BROKER  (1) "),
    (re.compile(r"(?<=127\.0\.0\.1 )\d+ +"), "<port> "),
    (re.compile(r'(?<="logDir":)"[^"]*"'), '"<dir>"'),
    (re.compile(r"(?<=Epoch: )\d+$", re.MULTILINE), "<epoch>"),
)
# Java prints sets in an arbitrary order.
ANY_ORDER = re.compile(r"(?<=options: )\[.*\]$|(?<=scenarios: \[)\[.*\](?=\]$)|(?<=Valid states are: ).*$")
ANY_ORDER_OF_TYPES = re.compile(r"(?<=Valid types are: ).*$")
TABLE = re.compile(r"^GROUP +\S")
BY_CHANCE = {"ProducerId", "LastTimestamp", "CurrentTransactionStartTimeMs", "TransactionDurationMs"}


CONFIGS = re.compile(r"(?<=\tConfigs: ).*")  # in arbitrary order
CREDENTIALS = re.compile(r"(?<=' are )SCRAM-.*")  # in arbitrary order


INTERNAL_TOPICS = re.compile(r"(?<= internal topics \[).*(?=\]$)")  # in arbitrary order
RESET_OFFSET = re.compile(r"^(Topic: \S+ Partition: |New offset \()")


def with_offsets_in_order(lines: list[str]) -> list[str]:
    """Sort neighbouring lines of new offsets, because their order is arbitrary."""
    shown: list[str] = []
    for resets, some in groupby(lines, key=lambda line: RESET_OFFSET.match(line) is not None):
        found = list(some)
        shown += sorted(found) if resets else found
    return shown


def in_order(match: re.Match[str]) -> str:
    return ", ".join(sorted(match[0].split(", ")))


def with_rows_in_order(lines: list[str]) -> list[str]:
    """Sort the rows of a table of groups, because their order is arbitrary."""
    shown: list[str] = []
    rows: list[str] | None = None
    for line in [*lines, ""]:
        if rows is None or not line:
            shown += [*sorted(rows or ()), line]
            rows = [] if TABLE.match(line) else None
        else:
            rows.append(line)
    return shown[:-1]


def with_tables_in_order(lines: list[str]) -> list[str]:
    """Tables of producers with sorted rows, without padding and without numbers that vary between runs."""
    shown: list[str] = []
    columns: list[str] = []
    rows: list[str] = []
    for line in [*lines, ""]:
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) == len(columns) > 1:
            for place, name in enumerate(columns):
                if name in BY_CHANCE and cells[place].isdigit():
                    cells[place] = "<n>"
                cells[place] = ",".join(sorted(cells[place].split(",")))
            rows.append("\t".join(cells).rstrip("\t"))
            continue
        shown += sorted(rows)
        columns = cells if line.endswith("\t") and set(cells) & (BY_CHANCE | {"TransactionalId"}) else []
        rows = []
        shown.append("\t".join(cells).rstrip("\t") if columns else line)
    return shown[:-1]


def sorted_configs(match: re.Match[str]) -> str:
    return ",".join(sorted(match[0].split(",")))


@dataclass(frozen=True, slots=True)
class Printed:
    output: tuple[str, ...]
    errors: tuple[str, ...]
    status: int

    def text(self) -> str:
        lines = [line or EMPTY for line in self.output] + [f"! {line}" for line in self.errors]
        return "\n".join(lines + ([f"exit {self.status}"] if self.status else []))


@dataclass(frozen=True, slots=True)
class Step:
    comment: str
    command: str
    input: str
    printed: str

    def arguments(self, broker: str) -> list[str]:
        return shlex.split(self.command.replace("$BROKER", broker))

    def text(self, printed: str) -> str:
        given = "".join(f"< {line}\n" for line in self.input.splitlines())
        return f"{self.comment}{self.command}\n{given}----\n{printed}\n"


def load(path: Path) -> list[Step]:
    steps = []
    for block in path.read_text().split("\n\n"):
        head, _, printed = block.strip("\n").partition("\n----")
        lines = head.splitlines()
        if not lines:
            continue
        comment = "".join(f"{line}\n" for line in lines if line.startswith("#"))
        [command] = [line for line in lines if not line.startswith(("#", "<"))]
        given = "".join(f"{line[2:]}\n" for line in lines if line.startswith("<"))
        steps.append(Step(comment, command, given, printed.strip("\n")))
    return steps


def normal(output: str, errors: str, status: int, broker: str) -> Printed:
    """The part of the output that counts in a comparison of two tools."""

    def clean(text: str) -> list[str]:
        text = CONFIGS.sub(sorted_configs, text.replace(broker, "$BROKER"))
        text = CREDENTIALS.sub(in_order, text)
        for pattern, shown in MOMENTS:
            text = pattern.sub(shown, text)
        return text.split("\n")[:-1] if text.endswith("\n") else text.split("\n") if text else []

    error_lines = [line for line in clean(errors) if not NOISE.search(line)]
    own = ("  barnabas.", "  confluent.")  # settings that Apache Kafka lacks
    lines = [line for line in clean(output) if not line.startswith(own)]
    shown = with_tables_in_order([HINT.sub("", EXCEPTION.sub("", line)) for line in lines])
    shown = with_offsets_in_order(with_rows_in_order(shown))
    shown = [INTERNAL_TOPICS.sub(in_order, line) for line in shown]
    if not status:
        error_lines = [line for line in error_lines if not TRACE.search(line)]
    error_lines = [line for line in shown if TO_ERRORS.match(line)] + error_lines
    if status:
        error_lines = error_lines[:1]  # after the first line Kafka's tools print their help or a stack trace
    error_lines = [BAD_BOOTSTRAP.sub("", HINT.sub("", EXCEPTION.sub("", line))) for line in error_lines]
    error_lines = [ANY_ORDER_OF_TYPES.sub(in_order, ANY_ORDER.sub(in_order, line)) for line in error_lines]
    return Printed(tuple(line for line in shown if not TO_ERRORS.match(line)), tuple(error_lines), status)
