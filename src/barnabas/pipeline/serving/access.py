"""Access to the views of a pipeline: through its serving process, or through its store if it does not run.

In: a pipeline. Out: queries that both answer in the same way; the URL of the serving process, and the
token with which applications write parts. Does not know: what is asked.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from barnabas.engine.lock import holder, is_held
from barnabas.engine.secrets import reveal
from barnabas.pipeline.serving.http import answers
from barnabas.pipeline.serving.http.client import PATIENCE_S, ServingClient, ServingError
from barnabas.pipeline.serving.store.opening import open_store
from barnabas.pipeline.serving.store.port import Limits, Store
from barnabas.pipeline.serving.store.query import parse, parse_as_of
from barnabas.pipeline.spec.model import Pipeline
from barnabas.pipeline.spec.state_folder import state_folder
from barnabas.pipeline.views.part_files import lake_parts

READY_FILE = "serving.json"
TOKEN_FILE = "serving.token"
ASK_PATIENCE_S = 5.0

Parameters = Sequence[tuple[str, str]]


class ViewQueries(Protocol):
    """Queries that the serving process and the store answer alike."""

    def views(self) -> list[dict[str, Any]]: ...

    def query(self, view: str, parameters: list[tuple[str, str]] | None = None) -> Any: ...

    def sql(self, statement: str, as_of: int | str | None = None) -> Any: ...


class StoreQueries:
    """Queries to the store of a pipeline that does not run."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def views(self) -> list[dict[str, Any]]:
        now = answers.now()
        return [answers.described(state, now) for state in self._store.states()]

    def query(self, view: str, parameters: list[tuple[str, str]] | None = None) -> Any:
        answer = self._store.answer(parse(view, parameters or []))
        return json.loads(answers.as_json(answer, answers.now()))

    def sql(self, statement: str, as_of: int | str | None = None) -> Any:
        when: int | datetime | None = parse_as_of(as_of) if isinstance(as_of, str) else as_of
        return json.loads(answers.as_json(self._store.sql(statement, when), answers.now()))


@contextlib.contextmanager
def open_queries(pipeline: Pipeline) -> Iterator[ViewQueries]:
    url = serving_url(pipeline)
    if url is not None:
        with serving_client(pipeline, url, patience_s=ASK_PATIENCE_S) as client:
            yield client
        return
    folder = state_folder(pipeline)
    running = holder(folder) if is_held(folder) else None
    if running is not None and running.is_supervisor:
        # Opening the store here would keep the serving process from opening it.
        raise ServingError("the serving process is starting: try again in a moment")
    store = open_pipeline_store(pipeline)
    try:
        yield StoreQueries(store)
    finally:
        store.close()


def serving_client(pipeline: Pipeline, url: str, patience_s: float = PATIENCE_S) -> ServingClient:
    """A client with the rights of the pipeline's own applications."""
    certificate = pipeline.serving.certificate
    return ServingClient(
        url, token_of(pipeline), patience_s, beside_file(pipeline, certificate) if certificate else None
    )


def beside_file(pipeline: Pipeline, path: str) -> Path:
    """A path of the pipeline's file, which is relative to the file."""
    return (pipeline.file.parent if pipeline.file is not None else Path()) / Path(path).expanduser()


def open_pipeline_store(pipeline: Pipeline) -> Store:
    """Open the store; only one process may have it open."""
    folder = state_folder(pipeline)
    folder.mkdir(parents=True, exist_ok=True)
    serving = pipeline.serving
    return open_store(
        reveal(serving.store),
        name=pipeline.name,
        folder=folder,
        keep_horizons=serving.keep_horizons,
        limits=limits_of(pipeline),
        lake=lake_parts(pipeline),
    )


def limits_of(pipeline: Pipeline) -> Limits:
    serving = pipeline.serving
    temp = str(beside_file(pipeline, serving.temp_folder)) if serving.temp_folder else ""
    return Limits(memory_bytes_max=serving.memory_bytes, threads=serving.threads, temp_folder=temp)


def serving_url(pipeline: Pipeline) -> str | None:
    """The URL of the pipeline's serving process; None if none runs."""
    try:
        found = json.loads((state_folder(pipeline) / READY_FILE).read_text())
        os.kill(int(found["pid"]), 0)
        return str(found["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def token_of(pipeline: Pipeline) -> str:
    """The token of the file, or a random one that is kept in a file only its owner can read."""
    given = reveal(pipeline.serving.token)
    if given:
        return given
    path = state_folder(pipeline) / TOKEN_FILE
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            write_once(path, secrets.token_urlsafe(32))
    return path.read_text().strip()


def write_once(path: Path, text: str) -> None:
    """Write a file atomically; keep a file that exists."""
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
    try:
        os.link(beside, path)
    finally:
        beside.unlink()
