"""`lag`: lines, totals, --watch, and the format of durations."""

import os
import pty
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable

import pytest

from barnabas.cli.groups.lag import duration, forecast_text, lines, terminal_table
from barnabas.cli.groups.lag_sources import Look
from barnabas.client.core.topology import TopicPartition
from barnabas.monitor.lag.forecast import Forecast, Outlook, RetentionRisk
from barnabas.monitor.lag.group_lag import GroupLag, PartitionLag
from barnabas.testing.waiting import wait_until

from .conftest import RunTool
from .group_members import Members

TIMEOUT_S = 60.0
MOMENT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d"


@pytest.mark.parametrize(
    ("span_ms", "shown"),
    [
        (None, "-"),
        (0, "0"),
        (7, "7ms"),
        (999, "999ms"),
        (1_000, "1s"),
        (59_999, "59s"),
        (60_000, "1m"),
        (185_000, "3m5s"),
        (7_380_000, "2h3m"),
        (356_400_000, "4d3h"),
    ],
)
def test_durations_are_short(span_ms: int | None, shown: str) -> None:
    assert duration(span_ms) == shown


def test_there_is_a_line_for_each_partition_and_a_total_for_each_group() -> None:
    group = GroupLag(
        "readers",
        "Stable",
        (
            PartitionLag(TopicPartition("t", 0), 3, 5, 61_000, "ann"),
            PartitionLag(TopicPartition("t", 1), None, 4, None, "bob"),
            PartitionLag(TopicPartition("t", 2), 4, 4, 0, None),
        ),
    )
    assert list(lines(Look([group]))) == [
        "GROUP    TOPIC    PARTITION  CURRENT  END  LAG  TIME-LAG  MEMBER",
        "readers  t        0          3        5    2    1m1s      ann",
        "readers  t        1          -        4    -    -         bob",
        "readers  t        2          4        4    0    0         -",
        "readers  (total)  3                        2    1m1s      Stable",
    ]


def test_names_cannot_move_the_cursor_nor_break_the_table() -> None:
    group = GroupLag("a\nb", "Stable", (PartitionLag(TopicPartition("t", 0), 3, 5, 61_000, "\x1b[31m[/x]"),))
    shown = list(lines(Look([group])))
    assert [line.isprintable() for line in shown] == [True] * 3
    assert "a\\nb" in shown[1] and "\\x1b[31m[/x]" in shown[1]
    console = pytest.importorskip("rich.console").Console(width=200)
    with console.capture() as capture:
        console.print(terminal_table(Look([group]), ""))
    assert "[31m[/x]" in capture.get()


@pytest.mark.parametrize(
    ("forecast", "text"),
    [
        (
            Forecast(Outlook.CATCHING_UP, 185.0, "why", RetentionRisk.NONE, None, "", 2.0, 1.0, 0.9),
            "catching up, caught up in 3m5s (high trust): why",
        ),
        (
            Forecast(
                Outlook.NOT_CONSUMING, None, "why", RetentionRisk.OVERTAKES, 7_380.0, "age", 0.0, 1.0, 0.1
            ),
            "not consuming (low trust): why; retention overtakes it in 2h3m: age",
        ),
        (
            Forecast(Outlook.CAUGHT_UP, 0.0, "", RetentionRisk.NONE, None, "", 1.0, 1.0, 1.0),
            "caught up",
        ),
    ],
)
def test_a_forecast_is_one_line(forecast: Forecast, text: str) -> None:
    assert forecast_text(forecast) == text


@pytest.fixture
def behind(broker: str, run_tool: RunTool, fresh_name: Callable[[], str]) -> str:
    """A group with the name of its topic and a lag of three records."""
    name = fresh_name()
    server = ("--bootstrap-server", broker)
    run_tool("kafka-topics", *server, "--create", "--topic", name)
    run_tool("kafka-console-producer", *server, "--topic", name, input="1\n2\n3\n")
    reset = ("--reset-offsets", "--group", name, "--topic", name, "--to-earliest", "--execute")
    run_tool("kafka-consumer-groups", *server, *reset)
    return name


def test_lag_in_messages_and_time(broker: str, behind: str, run_tool: RunTool) -> None:
    ran = run_tool("barnabas", "lag", "--bootstrap-server", broker, "--group", behind)
    row, total = [line.split() for line in ran.lines[1:]]
    assert row[:6] == [behind, behind, "0", "0", "3", "3"]
    assert re.fullmatch(r"\d+(ms|s)|\d+m(\d+s)?", row[6])
    assert row[7] == "-"
    assert (total[:4], total[-1]) == ([behind, "(total)", "1", "3"], "Empty")


def test_members_are_shown_and_all_groups_are_the_default(
    broker: str, behind: str, run_tool: RunTool
) -> None:
    with Members(broker) as members:
        members.join(behind, behind, client_id="ann")
        ran = run_tool("barnabas", "lag", "--bootstrap-server", broker)
    row, total = [line.split() for line in ran.lines if line.startswith(f"{behind} ")]
    assert (row[-1], total[-1]) == ("ann", "Stable")


def test_watching_prints_repeatedly(broker: str, behind: str, run_tool: RunTool) -> None:
    base = ("lag", "--bootstrap-server", broker, "--group", behind)
    ran = run_tool("barnabas", *base, "--watch", "0.1", "--count", "3")
    assert len(re.findall(rf"(?m)^{MOMENT}\nGROUP .*\n{behind} .*\n{behind} +\(total\)", ran.output)) == 3


def test_a_terminal_shows_a_table_that_refreshes(broker: str, behind: str) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "barnabas", "lag", "--bootstrap-server", broker]
    child = subprocess.Popen(
        [*command, "--group", behind, "--watch", "0.1", "--count", "2"],
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200", "LINES": "40"},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # Linux raises it when the other side has closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    _, errors = child.communicate(timeout=TIMEOUT_S)
    assert (child.returncode, errors) == (0, b"")
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert plain.count(f"{behind}  (total)") >= 2
    assert b"\x1b[1A" in shown  # back to the first line: drawn over, not scrolled


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--watch", "0"), "Error: --watch 0: give at least 0.1 seconds"),
        (("--watch", "nan"), "Error: --watch nan: give at least 0.1 seconds"),
        (("--count", "2"), "Error: --count needs --watch, and a number of at least 1"),
        (("--forecast",), "Error: --forecast needs --watch or --service: one look has no history"),
        (("serve", "none.yaml"), "Error: none.yaml cannot be read: No such file or directory"),
        (
            ("--service", "http://127.0.0.1:1"),
            "Error: http://127.0.0.1:1 cannot be reached: [Errno 111] Connection refused",
        ),
        (("--watch", "soon"), "Cannot parse argument 'soon' of option watch (see `barnabas lag --help`)"),
    ],
)
def test_a_wrong_option_is_one_line(run_tool: RunTool, arguments: tuple[str, ...], line: str) -> None:
    ran = run_tool("barnabas", "lag", *arguments)
    assert (ran.errors, ran.status) == (f"{line}\n", 1)


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health/ready") as response:
            return bool(response.status == 200)
    except urllib.error.HTTPError as error:
        error.close()
        return False


def test_lag_is_served_and_asked_of_the_service(broker: str, behind: str, run_tool: RunTool) -> None:
    command = [sys.executable, "-m", "barnabas", "lag", "serve", "--bootstrap-server", broker, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        try:
            assert child.stdout is not None
            line = child.stdout.readline()
            assert line.startswith("The lag service is ready: http://0.0.0.0:")
            url = f"http://127.0.0.1:{line.rsplit(':', 1)[1].strip()}"
            wait_until(lambda: is_ready(url), TIMEOUT_S, "the lag service is not ready")
            ran = run_tool("barnabas", "lag", "--service", url, "--group", behind, "--forecast")
            asked = run_tool("barnabas", "lag", "--bootstrap-server", broker, "--group", behind)
            row, total, forecast = ran.lines[1:]
            assert row.split()[:6] == asked.lines[1].split()[:6] == [behind, behind, "0", "0", "3", "3"]
            assert total.split()[-1] == "Empty"
            assert forecast.startswith(f"{behind}: unknown (low trust)")
            ran = run_tool("barnabas", "lag", "--service", url, "--group", "nobody")
            assert (ran.errors, ran.status) == ("Error: Group nobody not found.\n", 1)
            ran = run_tool("barnabas", "lag", "--service", url, "--cluster", "none")
            assert ran.errors.startswith(f"Error: {url}: the cluster 'none' is not watched")
        finally:
            child.terminate()
    assert child.returncode == 0


def test_watching_forecasts_from_what_it_saw(broker: str, behind: str, run_tool: RunTool) -> None:
    base = ("lag", "--bootstrap-server", broker, "--group", behind, "--forecast")
    ran = run_tool("barnabas", *base, "--watch", "0.1", "--count", "4")
    last = ran.output.rstrip().splitlines()[-1]
    assert last.startswith(
        f"{behind}: not consuming (low trust): the group does not move, 3 records are behind"
    )


def test_an_unknown_group_is_one_line(broker: str, run_tool: RunTool) -> None:
    ran = run_tool("barnabas", "lag", "--bootstrap-server", broker, "--group", "nobody")
    assert (ran.output, ran.errors, ran.status) == ("", "Error: Group nobody not found.\n", 1)
