"""Word count in Faust, run by the Python of a venv of its own: bootstrap servers, application id, folder.

It imports nothing of ours. Does not know: the comparison.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any


def main(bootstrap: str, application_id: str, folder: str) -> None:
    import faust  # type: ignore[import-not-found]

    app: Any = faust.App(
        application_id,
        broker=f"kafka://{bootstrap}",
        store="memory://",
        datadir=folder,
        topic_partitions=2,
        key_serializer="raw",
        value_serializer="raw",
        web_enabled=False,
        broker_commit_interval=1.0,
        stream_buffer_maxsize=16_384,
    )
    lines = app.topic("lines", value_serializer="raw")
    words = app.topic(
        f"{application_id}-words-repartition", partitions=2, internal=True, value_serializer="raw"
    )
    results = app.topic("counts", value_serializer="raw")
    counts = app.Table("counts", default=int, partitions=2, key_type=bytes, value_type=int)

    @app.agent(lines)  # type: ignore[misc]
    async def split(stream: Any) -> None:
        async for line in stream:
            for word in line.split(b" "):
                await words.send(key=word, value=word)

    @app.agent(words)  # type: ignore[misc]
    async def count(stream: Any) -> None:
        async for word in stream:
            counts[word] += 1
            await results.send(key=word, value=counts[word].to_bytes(8, "big"))

    @app.task()  # type: ignore[misc]
    async def running() -> None:
        print("RUNNING", flush=True)

    worker = faust.Worker(app, loglevel="warning", redirect_stdouts=False)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    worker.execute_from_commandline()


if __name__ == "__main__":
    main(*sys.argv[1:4])
