"""Finds or installs Java, which Spark needs.

Out: a Java that Spark finds: the installed one, else the system's package if this is root, else OpenJDK of
Eclipse Adoptium in the cache of the user.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

VERSION = "17"
PACKAGE = f"openjdk-{VERSION}-jre-headless"
FETCHER = "install-jdk>=1.1,<2"


class NoJava(Exception):
    """Java is missing and could not be installed."""


def ensure_java(say: Callable[[str], object]) -> None:
    if is_there():
        return
    say("there is no Java on this machine, and Spark needs it: fetching it")
    if by_package() and is_there():
        return
    reason = by_download()
    if reason:
        raise NoJava(
            f"Spark needs Java {VERSION} or newer, and none could be had: install it (on Debian: apt install"
            f" {PACKAGE}) and try again. {reason}"
        )


def is_there() -> bool:
    home = os.environ.get("JAVA_HOME")
    return bool(home and (Path(home) / "bin" / "java").exists()) or shutil.which("java") is not None


def by_package() -> bool:
    """Install the package of Debian or Ubuntu, if this is root."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    install = ["apt-get", "install", "-y", "-qq", PACKAGE]
    for command in (install, ["apt-get", "update", "-qq"], install):
        done = subprocess.run(command, capture_output=True, text=True)
        if command is install and done.returncode == 0:
            return True
    return False


def by_download() -> str:
    """Install into the user's cache; the reason if that fails."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "barnabas" / "java"
    found = next(cache.glob("*/bin/java"), None)
    if found is None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", FETCHER]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode != 0:
            return done.stderr.strip()[-300:]
        importlib.invalidate_caches()
        try:
            importlib.import_module("jdk").install(VERSION, jre=True, path=str(cache))
        except Exception as error:  # any error of the network
            return str(error)[:300]
        found = next(cache.glob("*/bin/java"), None)
    if found is None:
        return f"nothing was unpacked in {cache}"
    os.environ["JAVA_HOME"] = str(found.parent.parent)
    return ""
