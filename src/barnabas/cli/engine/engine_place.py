"""The place of the engine's files for a command: the option `--place`, or the lake of a pipeline's file.

In: options. Out: a catalogue. Does not know: what is done with it.
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.cli.engine.engine import DEFAULT_FILE
from barnabas.cli.frame.parsing import ToolError, UsageError
from barnabas.engine.catalogue.catalogue import ApplicationEntry, Catalogue
from barnabas.engine.places.object_store import NoRecords
from barnabas.engine.places.place import PlaceUnavailable, place_at


def catalogue_of(options: argparse.Namespace) -> Catalogue:
    if options.place:
        if options.file:
            raise UsageError("--place and --file both say where the engine's files are: give one of them")
        with errors_as_one_line():
            return Catalogue(place_at(options.place))
    file = options.file or DEFAULT_FILE
    if options.file is None and not Path(file).exists():
        raise UsageError(f"--place FOLDER or --file FILE is needed: there is no {DEFAULT_FILE} here")
    from barnabas.cli.pipelines.pipeline_file import load
    from barnabas.pipeline.spec.lake_lock import state_place

    with errors_as_one_line():
        return Catalogue(state_place(load(file)))


def entry_of(catalogue: Catalogue, name: str) -> ApplicationEntry:
    with errors_as_one_line():
        found = catalogue.application(name)
        if found is not None:
            return found
        names = [each.name for each in catalogue.applications()]
    raise ToolError(
        f"there is no application {name} at {catalogue.place.root}: there are {', '.join(names) or 'none'}"
    )


@contextmanager
def errors_as_one_line() -> Iterator[None]:
    try:
        yield
    except (PlaceUnavailable, NoRecords) as error:
        raise ToolError(str(error)) from error
