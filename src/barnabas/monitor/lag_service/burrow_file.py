"""Burrow's configuration, turned into settings of the lag service.

In: the tables of a `burrow.toml`. Out: properties, and notes on what has no effect here. Sections without a
counterpart are refused or noted with what to use instead: Zookeeper is not needed, notifiers are of alerts.
Does not know: files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.settings.errors import SettingsError

Table = Mapping[str, Any]

STORAGE = {
    "intervals": "intervals",
    "min-distance": "min.distance.seconds",
    "expire-group": "expire.group.seconds",
    "group-allowlist": "group.allowlist",
    "group-denylist": "group.denylist",
}
EVALUATOR = {"allowed-lag": "allowed.lag", "minimum-complete": "minimum.complete"}
CLUSTER = {"topic-refresh": "topic.refresh.seconds", "offset-refresh": "offset.refresh.seconds"}
CONSUMER = {
    "offsets-topic": "offsets.topic",
    "start-latest": "start.latest",
    "group-allowlist": "group.allowlist",
    "group-denylist": "group.denylist",
}
MECHANISMS = {
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
}
SINGLE = ("general", "logging", "zookeeper")
NAMED = (
    "cluster",
    "consumer",
    "client-profile",
    "tls",
    "sasl",
    "storage",
    "evaluator",
    "httpserver",
    "notifier",
)
ZOOKEEPER = "Burrow's lock in Zookeeper is not needed: several lag services may run side by side."
NOTIFIER = "The lag service tells nobody: `barnabas alerts serve FILE` does what this file's notifiers say."


def burrow_properties(tables: Table) -> tuple[dict[str, str], list[str]]:
    """SettingsError for a section that would be missed."""
    check_shape(tables)
    found: dict[str, str] = {}
    notes: list[str] = []
    if "notifier" in tables:
        notes.append(NOTIFIER)
    if "zookeeper" in tables:
        notes.append(ZOOKEEPER)
    if "logging" in tables or "general" in tables:
        notes.append("[general] and [logging] have no effect here, but for access-control-allow-origin.")
    origin = tables.get("general", {}).get("access-control-allow-origin")
    if origin:
        found["access.control.allow.origin"] = str(origin)
    for section, names in (("storage", STORAGE), ("evaluator", EVALUATOR)):
        for module in tables.get(section, {}).values():
            found |= renamed(module, names)
    if not tables.get("cluster"):
        raise SettingsError("no [cluster.NAME] section names a cluster", name="cluster")
    for name, cluster in tables["cluster"].items():
        found |= cluster_properties(tables, name, cluster)
    for name, consumer in tables.get("consumer", {}).items():
        found |= consumer_properties(tables, name, consumer)
    found |= http_properties(tables)
    return found, notes


def check_shape(tables: Table) -> None:
    """SettingsError for a value that stands where a section is expected."""
    for kind in (*SINGLE, *NAMED):
        found = tables.get(kind, {})
        if not isinstance(found, Mapping):
            raise SettingsError(f"{kind} is {found!r}: it is a section", name=kind)
        for name, section in found.items() if kind in NAMED else ():
            if not isinstance(section, Mapping):
                raise SettingsError(
                    f"{kind}.{name} is {section!r}: write a section [{kind}.NAME]", name=f"{kind}.{name}"
                )


def renamed(module: Table, names: Mapping[str, str]) -> dict[str, str]:
    return {names[name]: text_of(value) for name, value in module.items() if name in names}


def text_of(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value)


def cluster_properties(tables: Table, name: str, cluster: Table) -> dict[str, str]:
    if not cluster.get("servers"):
        raise SettingsError(f"cluster.{name} names no servers", name=f"cluster.{name}")
    found = renamed(cluster, CLUSTER)
    properties = {"bootstrap.servers": text_of(cluster["servers"])}
    properties |= profile_properties(tables, f"cluster.{name}", cluster.get("client-profile", ""))
    return found | {f"cluster.{name}.{key}": value for key, value in properties.items()}


def consumer_properties(tables: Table, name: str, consumer: Table) -> dict[str, str]:
    if consumer.get("class-name", "kafka") != "kafka":
        raise SettingsError(
            f"consumer.{name} has the class {consumer['class-name']}: groups in Zookeeper are not read, only "
            "class-name=kafka is",
            name=f"consumer.{name}",
        )
    if consumer.get("cluster") not in tables["cluster"]:
        raise SettingsError(
            f"consumer.{name} names the cluster {consumer.get('cluster')!r}, which has no section",
            name=f"consumer.{name}",
        )
    return renamed(consumer, CONSUMER)


def profile_properties(tables: Table, owner: str, name: str) -> dict[str, str]:
    """The client profile as properties of Kafka's clients."""
    if not name:
        return {}
    profile = tables.get("client-profile", {}).get(name)
    if profile is None:
        raise SettingsError(f"{owner}: there is no section [client-profile.{name}]", name=owner)
    if profile.get("iam"):
        raise SettingsError(f"client-profile.{name}: logins by AWS IAM are not supported", name=owner)
    found = {"client.id": str(profile["client-id"])} if profile.get("client-id") else {}
    tls = section(tables, "tls", profile.get("tls", ""))
    sasl = section(tables, "sasl", profile.get("sasl", ""))
    if tls is not None:
        found |= tls_properties(tls)
    if sasl is not None:
        found |= sasl_properties(sasl)
    protocol = {(False, False): "PLAINTEXT", (True, False): "SSL", (False, True): "SASL_PLAINTEXT"}
    found["security.protocol"] = protocol.get((tls is not None, sasl is not None), "SASL_SSL")
    return found


def section(tables: Table, kind: str, name: str) -> Table | None:
    if not name:
        return None
    found: Table | None = tables.get(kind, {}).get(name)
    if found is None:
        raise SettingsError(f"there is no section [{kind}.{name}]", name=kind)
    return found


def tls_properties(tls: Table) -> dict[str, str]:
    found: dict[str, str] = {}
    if tls.get("cafile"):
        found |= {"ssl.truststore.location": tls["cafile"], "ssl.truststore.type": "PEM"}
    if tls.get("certfile"):
        if not tls.get("keyfile"):
            raise SettingsError(
                f"the tls section with certfile {tls['certfile']} names no keyfile", name="tls"
            )
        # Burrow keeps certificate and key in two files; Kafka's clients take their texts.
        found |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": f"${{file:{tls['certfile']}}}",
            "ssl.keystore.key": f"${{file:{tls['keyfile']}}}",
        }
    if tls.get("noverify"):
        found["ssl.endpoint.identification.algorithm"] = ""
    return found


def sasl_properties(sasl: Table) -> dict[str, str]:
    mechanism = str(sasl.get("mechanism", "PLAIN")).upper()
    if mechanism not in MECHANISMS:
        raise SettingsError(f"the SASL mechanism {mechanism} is none of {', '.join(MECHANISMS)}", name="sasl")
    user, password = (
        str(sasl.get(key, "")).replace("\\", "\\\\").replace('"', '\\"') for key in ("username", "password")
    )
    jaas = f'{MECHANISMS[mechanism]} required username="{user}" password="{password}";'
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas}


def http_properties(tables: Table) -> dict[str, str]:
    listeners = []
    found: dict[str, str] = {}
    for name, server in tables.get("httpserver", {}).items():
        address = str(server.get("address", ":8000"))
        host, _, port = address.rpartition(":")
        tls = section(tables, "tls", server.get("tls", ""))
        if tls is not None:
            if not tls.get("certfile") or not tls.get("keyfile"):
                raise SettingsError(f"httpserver.{name}: its tls section names no certfile and keyfile")
            found |= tls_properties({key: tls[key] for key in ("certfile", "keyfile")})
        listeners.append(f"{'https' if tls is not None else 'http'}://{host or '0.0.0.0'}:{port}")
    return found | ({"listeners": ",".join(listeners)} if listeners else {})
