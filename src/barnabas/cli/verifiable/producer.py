"""verifiable-producer: produce numbers to a topic and print what becomes of each record, for system tests.

In: options of kafka-verifiable-producer. Out: an event for each record, and the counts at the end.
"""

import argparse
import asyncio
import time

from barnabas.cli.frame.client_settings import producer_settings
from barnabas.cli.frame.connecting import add_bootstrap, cluster_from, load_properties
from barnabas.cli.frame.ending import end_by_signal
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser, UsageError
from barnabas.cli.perf.perf_numbers import Throttle
from barnabas.cli.verifiable.events import Events
from barnabas.client.accumulator import SentRecord
from barnabas.client.core.errors import ClientError
from barnabas.client.producer import Producer
from barnabas.protocol import KafkaError

EXAMPLES = (
    "--topic orders --max-messages 1000",
    "--topic orders --max-messages 1000 --throughput 100 --acks 1 --repeating-keys 10",
)
WAITING_MAX = 10_000  # records whose results are not printed yet


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    parser.add_argument("--topic", help="the topic to write to (required)")
    parser.add_argument(
        "--max-messages", type=int, default=-1, metavar="N", help="stop after so many (default: never)"
    )
    parser.add_argument("--throughput", type=int, default=-1, metavar="N", help="records a second at most")
    parser.add_argument("--acks", type=int, default=-1, choices=(0, 1, -1), help="acks of a record (-1)")
    parser.add_argument(
        "--message-create-time", type=int, default=-1, metavar="MS", help="the timestamp of the first record"
    )
    parser.add_argument("--value-prefix", type=int, metavar="N", help="values become N.number")
    parser.add_argument("--repeating-keys", type=int, metavar="N", help="keys repeat from 0 to N - 1")
    parser.add_argument("--producer.config", dest="producer_config", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--command-config", metavar="FILE", help="a file of producer settings")


async def run(options: argparse.Namespace, out: Output) -> None:
    for name in ("bootstrap-server", "topic"):
        if getattr(options, name.replace("-", "_")) is None:
            raise UsageError(f"argument --{name} is required")
    if options.producer_config and options.command_config:
        raise UsageError("Options --producer.config and --command-config are mutually exclusive.")
    if options.producer_config:
        out.note(
            "Option --producer.config has been deprecated and will be removed in a future version. "
            "Use --command-config instead."
        )
    properties = {"acks": str(options.acks), "retries": "0", "enable.idempotence": "false"}
    properties |= load_properties(options.command_config or options.producer_config)
    async with cluster_from(options, properties, client_id="verifiable-producer") as cluster:
        await VerifiableProducer(options, out, Producer(cluster, producer_settings(properties))).run()


class VerifiableProducer:
    def __init__(self, options: argparse.Namespace, out: Output, producer: Producer) -> None:
        self._options = options
        self._events = Events(out)
        self._producer = producer
        self._waiting: list[tuple[SentRecord, str | None, str]] = []
        self._sent = self._acked = 0

    async def run(self) -> None:
        began = time.time()
        self._events.tell("startup_complete")
        try:
            with end_by_signal():
                await self._send_all()
        finally:
            await self._producer.flush()
            await self._tell_results()
            await self._producer.close()
            self._events.tell("shutdown_complete")
            seconds = max(time.time() - began, 0.001)
            self._events.tell(
                "tool_data",
                sent=self._sent,
                acked=self._acked,
                target_throughput=self._options.throughput,
                avg_throughput=self._acked / seconds,
            )

    async def _send_all(self) -> None:
        options = self._options
        throttle = Throttle(options.throughput, time.time())
        began_ms = int(time.time() * 1000)
        while not 0 <= options.max_messages <= self._sent:
            number = self._sent
            value = str(number) if options.value_prefix is None else f"{options.value_prefix}.{number}"
            key = None if options.repeating_keys is None else str(number % options.repeating_keys)
            created_ms = None
            if options.message_create_time != -1:
                created_ms = options.message_create_time + int(time.time() * 1000) - began_ms
            self._sent += 1
            try:
                data = None if key is None else key.encode()
                sent = await self._producer.send(options.topic, value.encode(), data, timestamp_ms=created_ms)
            except (KafkaError, ClientError) as error:
                self._failed(key, value, error)
                continue
            self._waiting.append((sent, key, value))
            await self._tell_results(only_done=len(self._waiting) < WAITING_MAX)
            await asyncio.sleep(throttle.wait_s(self._sent, time.time()))

    async def _tell_results(self, *, only_done: bool = False) -> None:
        """Print the results of records in the order in which they were sent."""
        for place, (sent, key, value) in enumerate(self._waiting):
            if only_done and not sent.is_done:
                self._waiting = self._waiting[place:]
                return
            try:
                written = await sent
            except (KafkaError, ClientError) as error:
                self._failed(key, value, error)
                continue
            self._acked += 1
            self._events.tell(
                "producer_send_success",
                key=key,
                value=value,
                offset=written.offset,
                topic=self._options.topic,
                partition=written.partition,
            )
        self._waiting = []

    def _failed(self, key: str | None, value: str, error: KafkaError | ClientError) -> None:
        name = error.code.name if isinstance(error, KafkaError) else type(error).__name__
        self._events.tell(
            "producer_send_error",
            key=key,
            value=value,
            topic=self._options.topic,
            exception=name,
            message=str(error),
        )
