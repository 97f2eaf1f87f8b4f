"""Reads a broker's MBeans from Jolokia's endpoint, which a Barnabas broker has beside its Prometheus page.

In: the response to a read of all MBeans, and the name of one (wildcards allowed). Out: beans with their
attributes as text. Does not know: the network.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from barnabas.cli.metrics.prometheus_text import ObjectName

PROPERTY = re.compile(r'([^=,]+)=("(?:[^"\\]|\\.)*"|[^,]*)')


@dataclass(frozen=True, slots=True)
class Bean:
    name: str
    domain: str
    properties: dict[str, str]
    attributes: dict[str, str]

    def is_selected(self, query: ObjectName) -> bool:
        wanted = query.properties
        if not fnmatchcase(self.domain, query.domain) or wanted.keys() - self.properties.keys():
            return False
        if not query.open_ended and self.properties.keys() - wanted.keys():
            return False
        return all(fnmatchcase(self.properties[key], pattern) for key, pattern in wanted.items())


def beans_of(text: str) -> Iterator[Bean]:
    for mbean, values in json.loads(text)["value"].items():
        domain, _, rest = mbean.partition(":")
        properties = {key: unquoted(value) for key, value in PROPERTY.findall(rest)}
        yield Bean(mbean, domain, properties, {name: str(value) for name, value in values.items()})


def unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value
