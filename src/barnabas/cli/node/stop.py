"""stop: stop a broker on this machine gracefully, and wait until its process has ended.

The tool finds the broker by the process id in its data folder, or by the port that it listens on.
"""

import argparse
import os
import signal
import time
from pathlib import Path

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError
from barnabas.storage.files.names import PROCESS_ID

EXAMPLES = ("--data ./data", "--port 9092")
NEEDS_ARGUMENTS = False
LISTENING = "0A"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", metavar="DIR", help="the broker's data folder (default: data)")
    parser.add_argument("--port", type=int, metavar="N", help="the port it listens on")
    parser.add_argument(
        "--timeout", type=float, default=60.0, metavar="S", help="how long to wait (default: 60)"
    )


def run(options: argparse.Namespace, out: Output) -> None:
    pid = by_port(options.port) if options.port is not None else by_folder(Path(options.data or "data"))
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + options.timeout
    while is_running(pid):
        if time.monotonic() > deadline:
            raise ToolError(f"process {pid} still runs after {options.timeout:g} s")
        time.sleep(0.05)
    out.line(f"Stopped the broker with process id {pid}.")


def by_folder(folder: Path) -> int:
    file = folder / PROCESS_ID
    try:
        pid = int(file.read_text())
    except (OSError, ValueError):
        raise ToolError(f"no broker runs in {folder}: there is no {file}") from None
    if not is_running(pid) or "barnabas" not in command_of(pid):
        raise ToolError(f"no broker runs in {folder}: process {pid} of {file} has ended")
    return pid


def by_port(port: int) -> int:
    """The Barnabas process that listens on a port (Linux only: reads /proc)."""
    sockets = {
        fields[9]
        for table in ("tcp", "tcp6")
        for line in read(f"/proc/net/{table}").splitlines()[1:]
        if (fields := line.split())[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port
    }
    for process in Path("/proc").glob("[0-9]*"):
        if "barnabas" not in command_of(int(process.name)):
            continue
        try:
            links = [str(link.readlink()) for link in (process / "fd").iterdir()]
        except OSError:
            continue
        if any(link == f"socket:[{number}]" for link in links for number in sockets):
            return int(process.name)
    raise ToolError(f"no Barnabas broker listens on port {port}")


def is_running(pid: int) -> bool:
    """Whether a process runs; a zombie does not count."""
    state = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if state:
        return state[0] != "Z"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path("/proc/self").exists() is False


def command_of(pid: int) -> str:
    if not Path("/proc/self").exists():
        return "barnabas"  # this system has no /proc: accept any process
    return read(f"/proc/{pid}/cmdline").replace("\0", " ")


def read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
