"""jmx: print a broker's metrics under the names of Kafka's MBeans, once or repeatedly.

The values come from the broker's metrics port (`start --metrics-port`), because a Barnabas broker has no JVM.
It serves MBeans with all attributes in Jolokia's form. The JMX exporter of an Apache Kafka broker serves only
the Prometheus page; then names and attributes are found from that.
"""

import argparse
import time
import urllib.error
import urllib.request
from dataclasses import dataclass

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser
from barnabas.cli.metrics.jolokia_beans import Bean, beans_of
from barnabas.cli.metrics.prometheus_text import ObjectName, Sample, parse_samples

EXAMPLES = (
    "--object-name 'kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec' --one-time",
    "--jmx-url http://localhost:9404/metrics --object-name 'kafka.log:type=Log,name=Size,*'",
    "--object-name 'kafka.network:type=RequestMetrics,name=TotalTimeMs,*' --attributes 99thPercentile",
)
NEEDS_ARGUMENTS = False
PAGE, ALL_BEANS = "/metrics", "/jolokia/read/*:*?canonicalNaming=false"
DEFAULT_URL = "http://127.0.0.1:9404/metrics"
WAIT_S_MAX = 10.0
CONNECT_S_MAX = 10.0
AGAIN_S = 0.1
FORMATS = {"properties": "{}={}", "csv": '{},"{}"', "tsv": "{}\t{}"}
DATE_LETTERS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSS": "%f"}


def add_arguments(parser: ToolParser) -> None:
    parser.signed.add("--reporting-interval")
    parser.add_argument(
        "--object-name",
        action="append",
        metavar="NAME",
        help="an MBean, wildcards allowed; may be repeated (default: everything)",
    )
    parser.add_argument(
        "--attributes", metavar="A1,A2", help="only these attributes, such as Count,99thPercentile"
    )
    parser.add_argument(
        "--reporting-interval", type=int, default=2_000, metavar="MS", help="default: 2000; -1: once"
    )
    parser.add_argument("--one-time", nargs="?", const="true", default="false", metavar="true", help="once")
    parser.add_argument(
        "--date-format", metavar="FORMAT", help="format of the time, such as yyyy-MM-dd HH:mm:ss"
    )
    parser.add_argument("--jmx-url", metavar="URL", default=DEFAULT_URL, help=f"default: {DEFAULT_URL}")
    parser.add_argument(
        "--report-format", default="original", metavar="FORMAT", help="original, properties, csv or tsv"
    )
    parser.add_argument("--jmx-auth-prop", metavar="USER=PASSWORD", help=argparse.SUPPRESS)
    parser.add_argument("--jmx-ssl-enable", metavar="true", help=argparse.SUPPRESS)
    parser.add_argument("--wait", action="store_true", help="wait until every named MBean exists")


def run(options: argparse.Namespace, out: Output) -> None:
    url = checked_url(options.jmx_url)
    queries = parse_queries(options.object_name)
    wanted = None if options.attributes is None else {name for name in options.attributes.split(",") if name}
    rows = first_rows(url, queries, wanted, wait=options.wait)
    keys = sorted(rows)
    shape = FORMATS.get(options.report_format.lower())
    if shape is None:
        out.line(",".join(f'"{key}"' for key in ("time", *keys)))
    while True:
        started_s = time.monotonic()
        for line in report(keys, {"time": now(options.date_format), **rows}, shape):
            out.line(line)
        out.flush()
        if options.reporting_interval < 0 or options.one_time.lower() == "true":
            return
        time.sleep(max(0.0, options.reporting_interval / 1000 - (time.monotonic() - started_s)))
        rows = read(url, queries, wanted)


def report(keys: list[str], values: dict[str, str], shape: str | None) -> list[str]:
    every = ("time", *keys)
    if shape is None:
        return [",".join(values.get(key, "") for key in every)]
    return [shape.format(key, values.get(key, "")) for key in every]


def checked_url(url: str) -> str:
    if url.startswith("service:jmx:"):
        raise ToolError(
            "there is no JMX: a broker serves its metrics over HTTP. Start it with --metrics-port 9404 (or "
            f"barnabas.metrics.port=9404) and use --jmx-url {DEFAULT_URL}"
        )
    if not url.startswith(("http://", "https://")):
        raise ToolError(f"--jmx-url {url}: the URL must start with http://, as in {DEFAULT_URL}")
    return url


def parse_queries(names: list[str] | None) -> list[ObjectName]:
    try:
        return [ObjectName.parse(name) for name in names or ()]
    except ValueError as error:
        raise ToolError(f"--object-name: {error}") from None


def first_rows(url: str, queries: list[ObjectName], wanted: set[str] | None, *, wait: bool) -> dict[str, str]:
    """The rows of the first scrape; with `wait`, of the first scrape that has every MBean."""
    deadline_s = time.monotonic() + WAIT_S_MAX
    while True:
        read = Read.of(url)
        missing = [query.text for query in queries if not read.has(query)]
        if not wait or not missing or any(query.is_pattern for query in queries):
            break
        if time.monotonic() > deadline_s:
            raise ToolError(
                f"Could not find all requested object names after {WAIT_S_MAX * 1000:.0f} ms. "
                f"Missing {','.join(missing)}"
            )
        time.sleep(AGAIN_S)
    rows = read.rows(queries, wanted)
    if not rows:
        listed = ", ".join(query.text for query in queries)
        raise ToolError(f"No matched attributes for the queried objects [{listed}].")
    return rows


@dataclass(slots=True)
class Read:
    """The values of one moment: MBeans, or the samples of a Prometheus page."""

    beans: list[Bean] | None
    samples: list[Sample]

    @classmethod
    def of(cls, url: str) -> "Read":
        if url.endswith(PAGE):
            text = fetched(url.removesuffix(PAGE) + ALL_BEANS, or_none=True)
            if text is not None:
                return cls(list(beans_of(text)), [])
        return cls(None, parse_samples(fetched(url) or ""))

    def has(self, query: ObjectName) -> bool:
        if self.beans is not None:
            return any(bean.is_selected(query) for bean in self.beans)
        return any(map(query.matches, self.samples))

    def rows(self, queries: list[ObjectName], wanted: set[str] | None) -> dict[str, str]:
        if self.beans is None:
            return rows_of(self.samples, queries, wanted)
        return {
            f"{bean.name}:{attribute}": value
            for bean in self.beans
            if not queries or any(bean.is_selected(query) for query in queries)
            for attribute, value in bean.attributes.items()
            if wanted is None or attribute in wanted
        }


def read(url: str, queries: list[ObjectName], wanted: set[str] | None) -> dict[str, str]:
    return Read.of(url).rows(queries, wanted)


def rows_of(samples: list[Sample], queries: list[ObjectName], wanted: set[str] | None) -> dict[str, str]:
    rows = {}
    for sample in samples:
        if wanted is not None and sample.attribute not in wanted:
            continue
        if not queries:
            rows[f"{sample.prometheus_name}:{sample.attribute}"] = sample.value
        for query in queries:
            if query.matches(sample):
                rows[f"{query.shown(sample)}:{sample.attribute}"] = sample.value
    return rows


def fetched(url: str, *, or_none: bool = False) -> str | None:
    """The text at a URL; with `or_none`, None if the server has nothing there."""
    try:
        with urllib.request.urlopen(url, timeout=CONNECT_S_MAX) as response:
            text: str = response.read().decode("utf-8", "replace")
            return text
    except urllib.error.HTTPError as error:
        error.close()
        if or_none:
            return None
        raise ToolError(f"{url} returned {error.code} {error.reason}") from None
    except OSError as error:
        if or_none:
            return None
        reason = getattr(error, "reason", error)
        shown = getattr(reason, "strerror", None) or str(reason)
        raise ToolError(f"Could not connect to {url}: {shown.lower()}") from None


def now(date_format: str | None) -> str:
    now_s = time.time()
    if date_format is None:
        return str(int(now_s * 1000))
    shown = date_format
    for letters, code in DATE_LETTERS.items():
        shown = shown.replace(letters, f"{int(now_s * 1000) % 1000:03}" if code == "%f" else code)
    return time.strftime(shown, time.localtime(now_s))
