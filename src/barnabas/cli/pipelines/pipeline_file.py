"""Reads and checks the pipeline's file, for all commands.

In: a path. Out: a pipeline, or a ToolError with every problem on a line of its own.
"""

from pathlib import Path

from barnabas.cli.frame.parsing import ToolError
from barnabas.pipeline.file.reading import FileProblems, read_pipeline
from barnabas.pipeline.spec.model import Pipeline


def load(path: str) -> Pipeline:
    if not Path(path).exists():
        raise ToolError(f"{path} does not exist: `barnabas pipeline init` writes one, --file names another")
    try:
        return read_pipeline(path)
    except FileProblems as error:
        raise ToolError(str(error)) from error
