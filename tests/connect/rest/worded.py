"""Configurations that requests of several scenarios have. Talks replace `<folder>`."""

from __future__ import annotations

from connect.worker_processes import FILE_SINK, FILE_SOURCE

TRANSFORMS = "org.apache.kafka.connect.transforms."
SOURCE = {"connector.class": FILE_SOURCE, "file": "<folder>/in.txt", "topic": "rest-lines"}
SINK = {"connector.class": FILE_SINK, "file": "<folder>/out.txt", "topics": "rest-lines"}
BROKEN = {**SINK, "file": "<folder>/no/such/folder/out.txt"}
