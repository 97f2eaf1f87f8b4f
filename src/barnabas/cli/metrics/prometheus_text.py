"""Maps the samples of a Prometheus endpoint to the MBeans and attributes that they represent in Kafka.

In: the text of a scrape, and the name of an MBean (wildcards allowed). Out: samples, and the samples that
belong to the MBean. docs/metrics.md explains the rule. Does not know: the network.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \d+)?")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
PERCENTILES = {
    "0.5": "50th",
    "0.75": "75th",
    "0.95": "95th",
    "0.98": "98th",
    "0.99": "99th",
    "0.999": "999th",
}
OWN_PROPERTIES = ("type", "name")
ESCAPES = {"n": "\n", "\\": "\\", '"': '"'}


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample; `family` is its name without the suffix that stands for the attribute."""

    family: str
    attribute: str
    labels: dict[str, str]
    value: str

    @property
    def prometheus_name(self) -> str:
        shown = ",".join(f'{name}="{value}"' for name, value in self.labels.items())
        return f"{self.family}{{{shown}}}" if shown else self.family


def parse_samples(text: str) -> list[Sample]:
    kinds: dict[str, str] = {}
    found = []
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ", 3)
            kinds[name] = kind
        elif (match := SAMPLE.fullmatch(line.strip())) is not None:
            name, labels, value = match.groups()
            found.append(sample_of(name, dict(read_labels(labels or "")), value, kinds))
    return found


def read_labels(text: str) -> Iterator[tuple[str, str]]:
    for name, value in LABEL.findall(text):
        yield name, re.sub(r"\\(.)", lambda match: ESCAPES.get(match[1], match[1]), value)


def sample_of(name: str, labels: dict[str, str], value: str, kinds: dict[str, str]) -> Sample:
    quantile = labels.pop("quantile", None)
    if quantile is not None:
        number = f"{float(quantile):g}"
        return Sample(name, f"{PERCENTILES.get(number, number)}Percentile", labels, value)
    for suffix, attribute in (("_count", "Count"), ("_sum", "Sum")):
        family = name.removesuffix(suffix)
        if family != name and kinds.get(family) in ("summary", "histogram"):
            return Sample(family, attribute, labels, value)
    if name.endswith("_total"):
        return Sample(name.removesuffix("_total"), "Count", labels, value)
    return Sample(name, "Value", labels, value)


@dataclass(frozen=True, slots=True)
class ObjectName:
    """The name of an MBean: `domain:type=T,name=N,label=value`; `*` and `?` may stand in each part."""

    text: str
    domain: str
    properties: dict[str, str]
    open_ended: bool

    @classmethod
    def parse(cls, text: str) -> "ObjectName":
        domain, colon, rest = text.partition(":")
        parts = [part for part in rest.split(",") if part]
        open_ended = "*" in parts
        pairs = [part.split("=", 1) for part in parts if part != "*"]
        if not colon or not parts or any(len(pair) != 2 or not pair[0] for pair in pairs):
            raise ValueError(
                f"{text!r} is no name of an MBean such as kafka.server:type=ReplicaManager,name=*"
            )
        return cls(text, domain, dict(pairs), open_ended)

    @property
    def is_pattern(self) -> bool:
        return self.open_ended or any(letter in self.text for letter in "*?")

    def matches(self, sample: Sample) -> bool:
        wanted = {name: value for name, value in self.properties.items() if name not in OWN_PROPERTIES}
        if set(wanted) - set(sample.labels) or (not self.open_ended and set(sample.labels) - set(wanted)):
            return False
        return re.fullmatch(self._family(), sample.family) is not None and all(
            re.fullmatch(expression(value), sample.labels[name]) for name, value in wanted.items()
        )

    def _family(self) -> str:
        name = re.sub(r"PerSec\w*$", "", self.properties.get("name", ""))
        parts = [self.domain, self.properties.get("type", "*" if self.open_ended else ""), name]
        if "name" not in self.properties and self.open_ended:
            parts[2] = "*"
        return "_".join(expression(part, flat=True) for part in parts if part)

    def shown(self, sample: Sample) -> str:
        """The MBean name of a sample, in the spelling of this name if it has no wildcards."""
        own = [self.properties.get(name, "*") for name in OWN_PROPERTIES if name in self.properties]
        if any(letter in part for part in (self.domain, *own) for letter in "*?"):
            return sample.prometheus_name
        if self.open_ended and "name" not in self.properties:
            return sample.prometheus_name
        pairs = [(name, self.properties[name]) for name in self.properties if name in OWN_PROPERTIES]
        return f"{self.domain}:" + ",".join(
            f"{name}={value}" for name, value in (*pairs, *sample.labels.items())
        )


def expression(text: str, *, flat: bool = False) -> str:
    """A name with wildcards as a regular expression; with `flat`, in the spelling of Prometheus' names."""
    parts = []
    for letter in text:
        if letter in "*?":
            parts.append(".*" if letter == "*" else ".")
        else:
            parts.append(re.sub(r"[^a-z0-9]", "_", letter.lower()) if flat else re.escape(letter))
    return "".join(parts)
