"""The Python that Spark's workers run, and whether it has our package.

In: the environment of a driver. Out: the interpreter, or an error that says what to set. Spark starts workers
with the `python3` of the PATH unless it is told otherwise; one that lacks our package reports that there is
no data source `barnabas`. Does not know: sessions.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping

VARIABLES = ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")  # in the order in which Spark's planning looks
ASK_S_MAX = 30.0


class WrongPython(RuntimeError):
    """Spark's workers run a Python without our package; the message says what to do."""


def workers_python(environment: Mapping[str, str] | None = None) -> str:
    """The command that Spark starts its workers with on this machine."""
    given = os.environ if environment is None else environment
    chosen = next((given[name] for name in VARIABLES if given.get(name)), "python3")
    return shutil.which(chosen, path=given.get("PATH")) or chosen


def lacks_package(command: str) -> str:
    """Why the interpreter cannot run our source; empty if it can."""
    if os.path.realpath(command) == os.path.realpath(sys.executable) and command == sys.executable:
        return ""
    asked = [command, "-c", "import importlib.util as u; print(u.find_spec('pyspark_barnabas') is not None)"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=ASK_S_MAX, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command} cannot be run: {error}"
    return "" if done.stdout.strip() == "True" else f"{command} does not have the package barnabas"


def prefer_this_python() -> None:
    """Let Spark's workers run this interpreter, unless the environment names another or a session runs."""
    from pyspark import SparkContext

    if SparkContext._active_spark_context is None:
        os.environ.setdefault(VARIABLES[1], sys.executable)


def use_this_python() -> str:
    """As `prefer_this_python`, before the session is made: a running one keeps its choice. WrongPython says
    if workers will not find our package."""
    prefer_this_python()
    command = workers_python()
    if reason := lacks_package(command):
        raise WrongPython(
            f"Spark's workers would not find the data source barnabas: {reason}. Set PYSPARK_PYTHON to"
            f" {sys.executable} before the session is made"
        )
    return command
