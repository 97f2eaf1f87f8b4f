"""The folder in which a run keeps its own state: lock, timeline, logs, schedule, the applied file.

In: a pipeline. Out: folders of this machine: inside of the lake if it is a folder, beside the file if it
is a URL. Does not know: what is in them.
"""

from __future__ import annotations

from pathlib import Path

from barnabas.pipeline.lake.tables import OWN
from barnabas.pipeline.spec.model import Pipeline


def state_folder(pipeline: Pipeline) -> Path:
    lake = pipeline.lake_location
    if lake.is_local:
        return Path(lake.root) / OWN
    base = pipeline.file.parent if pipeline.file is not None else Path.cwd()
    return base / f".{OWN.lstrip('_')}" / pipeline.name


def logs_folder(pipeline: Pipeline) -> Path:
    return state_folder(pipeline) / "logs"
