"""Commands of `engine` that change something: stop, reset, forget, package.

In: options. Out: requests in the catalogue, deleted states, an archive.
"""

import argparse
import getpass
import shutil
import socket
import sys
import time
from pathlib import Path

from barnabas.cli.engine.engine_place import catalogue_of, entry_of, errors_as_one_line
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError
from barnabas.engine.catalogue.statuses import ApplicationState
from barnabas.engine.upgrades import reset_query

LOOK_S = 0.5


def stop(options: argparse.Namespace, out: Output) -> int:
    catalogue = catalogue_of(options)
    name = entry_of(catalogue, options.application).name
    with errors_as_one_line():
        catalogue.request_stop(name, f"{getpass.getuser()}@{socket.gethostname()}")
    deadline = time.monotonic() + options.wait
    while (state := entry_of(catalogue, name).status.state) == ApplicationState.RUNNING:
        if time.monotonic() > deadline:
            out.note(f"{name}: asked to stop; it still finishes its current work after {options.wait:g} s")
            return 1
        time.sleep(LOOK_S)
    out.line(f"{name}: {state}. It stays so, also on hosts that stand by, until somebody runs it again")
    return 0


def reset(options: argparse.Namespace, out: Output) -> int:
    catalogue = catalogue_of(options)
    entry = catalogue.application(options.application)
    if entry is not None and entry.status.state == ApplicationState.RUNNING:
        raise ToolError(f"{options.application} runs on {entry.status.host}: stop it first")
    if not options.yes:
        print(f"This deletes the state of query {options.query} of {options.application}; it starts anew.")
        print("Type yes to go on: ", end="", flush=True)
        if sys.stdin.readline().strip() != "yes":
            raise ToolError("nothing was deleted")
    with errors_as_one_line():
        deleted = reset_query(catalogue.place, options.application, options.query)
    out.line(f"{options.application} {options.query}: {deleted} files deleted")
    return 0


def forget(options: argparse.Namespace, out: Output) -> int:
    catalogue = catalogue_of(options)
    entry = entry_of(catalogue, options.application)
    if entry.status.state == ApplicationState.RUNNING:
        raise ToolError(f"{entry.name} runs on {entry.status.host}: stop it first")
    with errors_as_one_line():
        catalogue.forget(entry.name)
    out.line(f"{entry.name}: removed from the catalogue; its state and its data stay")
    return 0


def package(options: argparse.Namespace, out: Output) -> int:
    from barnabas.engine.shipping.archive import archive, python_tag

    found = archive()
    if options.output:
        shutil.copyfile(found, options.output)
        found = Path(options.output)
    out.line(f"{found}: {found.stat().st_size / 1e6:.1f} MB, for {python_tag()}")
    return 0
