"""The form of v3's responses: resources with their URLs and names, and lists of them.

In: the address under which the proxy is known, names. Out: dictionaries for JSON. Does not know: Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

Resource = dict[str, Any]
SAFE_IN_PATH = "-._~:@!$&'()*+,;="


class Links:
    """URLs and resource names of one cluster, seen from one caller."""

    __slots__ = ("_crn", "_root", "base", "cluster_id")

    def __init__(self, base: str, cluster_id: str, crn_authority: str = "") -> None:
        self.base = base.rstrip("/")
        self._crn = f"crn://{crn_authority}/kafka={escaped(cluster_id)}"
        self.cluster_id = cluster_id
        self._root = f"{self.base}/v3/clusters/{escaped(cluster_id)}"

    def url(self, *path: str | int) -> str:
        """The URL of a path below the cluster."""
        return "/".join((self._root, *map(escaped, path)))

    def related(self, *path: str | int) -> dict[str, str]:
        return {"related": self.url(*path)}

    def name(self, *parts: tuple[str, str | int] | str) -> str:
        """The Confluent resource name: `crn:///kafka=ID/topic=T`."""
        words = (each if isinstance(each, str) else f"{each[0]}={escaped(each[1])}" for each in parts)
        return "/".join((self._crn, *words))

    def resource(self, kind: str, url: str, name: str | None, fields: Mapping[str, Any]) -> Resource:
        metadata = {"self": url, "resource_name": name}
        return {"kind": kind, "metadata": metadata, "cluster_id": self.cluster_id, **fields}


def escaped(part: str | int) -> str:
    return quote(str(part), safe=SAFE_IN_PATH)
