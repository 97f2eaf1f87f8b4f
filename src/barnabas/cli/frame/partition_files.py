"""Reads files that list partitions: `{"partitions": [{"topic": "a", "partition": 0}]}`.

In: a file. Out: its entries. Each field is checked; errors have the text of Kafka's tools.
Does not know: what the tool does with the partitions.
"""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from barnabas.cli.frame.parsing import ToolError
from barnabas.client.core.topology import TopicPartition

KINDS = {str: "String", int: "Integer"}


def load(path: str) -> dict[str, Any] | None:
    """The JSON object in a file; None if the file is no JSON."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError:
        raise ToolError(f"Unable to read file {path}") from None
    except ValueError:
        return None
    if not isinstance(content, dict):
        raise ToolError(f"Expected JSON object, received {as_json(content)}")
    return content


def entries(content: Any) -> list[dict[str, Any]]:
    if not isinstance(content, list):
        raise ToolError(f"Expected JSON array, received {as_json(content)}")
    for entry in content:
        if not isinstance(entry, dict):
            raise ToolError(f"Expected JSON object, received {as_json(entry)}")
    return content


def partition_of(entry: dict[str, Any]) -> TopicPartition:
    return TopicPartition(field(entry, "topic", str), field(entry, "partition", int))


def field(entry: dict[str, Any], name: str, kind: type, shown: str | None = None) -> Any:
    if name not in entry:
        raise ToolError(f"No such field exists: `{name}`")
    value = entry[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ToolError(f"Expected `{shown or KINDS[kind]}` value, received {as_json(value)}")
    return value


def duplicates(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    return [topic_partition for topic_partition, count in Counter(partitions).items() if count > 1]


def as_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
