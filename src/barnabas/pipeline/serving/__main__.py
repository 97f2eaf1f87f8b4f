"""`python -m barnabas.pipeline.serving`: the serving process of a pipeline.

In: arguments. Secrets come by environment only, so that no process list shows them: BARNABAS_SERVING_TOKEN
(lets the applications write parts), BARNABAS_SERVING_STORE (`duckdb`, `duckdb:/path`, `postgresql://…`),
BARNABAS_SERVING_GUESTS (who may ask, as JSON: {"tokens": [...], "users": {name: password}}; none: everybody)
and BARNABAS_SERVING_LAKE (settings of a lake behind a URL, as JSON, in Spark's names).
Out: an exit code. Does not know: the pipeline's file.

    python -m barnabas.pipeline.serving --name shop --folder lake/_barnabas --port 8088
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from barnabas.pipeline.serving.http.guests import guests
from barnabas.pipeline.serving.process import Settings, serve
from barnabas.pipeline.serving.store.port import KEEP_HORIZONS, Limits


def settings_of(arguments: Sequence[str] | None = None) -> Settings:
    parser = argparse.ArgumentParser(
        prog="barnabas.pipeline.serving", description="Serves the views of a pipeline."
    )
    parser.add_argument("--name", required=True, help="the pipeline's name")
    parser.add_argument("--folder", type=Path, required=True, help="where the embedded store lies")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8088, help="0: any that is free; see --ready")
    parser.add_argument(
        "--keep-horizons", type=int, default=KEEP_HORIZONS, help="how far time travel goes back"
    )
    parser.add_argument("--ready", type=Path, help="a file that tells url and pid once requests are answered")
    parser.add_argument(
        "--ends-with",
        type=int,
        default=0,
        metavar="PID",
        help="ends when this process, which started it, does",
    )
    parser.add_argument("--statement-ms-max", type=int, default=Limits().statement_ms_max)
    parser.add_argument("--rows-max", type=int, default=Limits().rows_max)
    parser.add_argument("--lake", default="", help="the lake, in which large parts lie as files")
    parser.add_argument("--memory-bytes", type=int, default=Limits().memory_bytes_max)
    parser.add_argument("--threads", type=int, default=Limits().threads, help="0: one for each core")
    parser.add_argument("--temp-folder", default="", help="where an embedded store puts what exceeds memory")
    parser.add_argument("--certificate", type=Path, help="PEM file: the certificate chain, for TLS")
    parser.add_argument("--private-key", type=Path, help="PEM file: the key of the certificate")
    parser.add_argument("--plaintext", action="store_true", help="something in front of it does TLS")
    given = parser.parse_args(arguments)
    allowed = json.loads(os.environ.get("BARNABAS_SERVING_GUESTS") or "{}")
    return Settings(
        store=os.environ.get("BARNABAS_SERVING_STORE") or "duckdb",
        name=given.name,
        folder=given.folder,
        token=os.environ.get("BARNABAS_SERVING_TOKEN", ""),
        host=given.host,
        port=given.port,
        keep_horizons=given.keep_horizons,
        ready=given.ready,
        parent=given.ends_with,
        limits=Limits(
            statement_ms_max=given.statement_ms_max,
            rows_max=given.rows_max,
            memory_bytes_max=given.memory_bytes,
            threads=given.threads,
            temp_folder=given.temp_folder,
        ),
        lake=given.lake,
        lake_settings=json.loads(os.environ.get("BARNABAS_SERVING_LAKE") or "{}"),
        guests=guests(allowed.get("tokens", ()), allowed.get("users")),
        certificate=given.certificate,
        private_key=given.private_key,
        plaintext=given.plaintext,
    )


if __name__ == "__main__":
    sys.exit(serve(settings_of()))
