"""Settings of the Kafka clients of one task: the worker's, then those of Kafka Connect, then the connector's.

In: properties of the worker and of the connector. Out: properties of a producer, a consumer or an admin
client, or ConnectError when the policy of overrides forbids one. Does not know: connections.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.connect.plugins import ConnectError
from barnabas.spark.basics.settings import FORBIDDEN, ClientSettings, client_settings

POLICY = "connector.client.config.override.policy"
ALLOWLIST = "connector.client.config.override.allowlist"
PRINCIPAL = ("sasl.jaas.config", "sasl.mechanism", "security.protocol")
TOP_LEVEL = ("bootstrap.servers", "security.", "sasl.", "ssl.", "request.timeout.ms", "config.providers")
MESSAGES = {
    "none": "the worker allows no client overrides",
    "principal": "the worker allows overrides of the principal only",
    "allowlist": "the worker's allowlist does not name it",
}


def policy_of(worker: Mapping[str, str]) -> str:
    """`All`, `None`, `Principal` or `Allowlist`, in small letters; the class of Java means the same."""
    text = worker.get(POLICY, "All").strip()
    return text.rpartition(".")[2].removesuffix("ConnectorClientConfigOverridePolicy").lower()


def refused_overrides(worker: Mapping[str, str], config: Mapping[str, str]) -> dict[str, str]:
    """Overrides of a connector that the worker's policy forbids, with the reason."""
    policy = policy_of(worker)
    allowed = {name.strip() for name in worker.get(ALLOWLIST, "").split(",")}
    found = {}
    for name in config:
        kind, _, client_setting = name.partition(".override.")
        if kind not in ("producer", "consumer", "admin") or not client_setting:
            continue
        is_fine = {
            "all": True,
            "none": False,
            "principal": client_setting in PRINCIPAL,
            "allowlist": client_setting in allowed,
        }.get(policy, True)
        if not is_fine:
            found[name] = f"{name} is not allowed: {MESSAGES[policy]}"
    return found


def client_properties(
    kind: str, worker: Mapping[str, str], config: Mapping[str, str], client_id: str
) -> dict[str, str]:
    """`kind` is producer, consumer or admin. References in the worker's settings are resolved already."""
    refused = refused_overrides(worker, config)
    if refused:
        raise ConnectError("; ".join(refused.values()))
    prefix, override = f"{kind}.", f"{kind}.override."
    return {
        **{name: value for name, value in worker.items() if name.startswith(TOP_LEVEL)},
        "client.id": client_id,
        **{n.removeprefix(prefix): v for n, v in worker.items() if n.startswith(prefix)},
        **{n.removeprefix(override): v for n, v in config.items() if n.startswith(override)},
    }


def connection_settings(properties: Mapping[str, str]) -> ClientSettings:
    """The part of a client's properties that connections need."""
    return client_settings(
        {f"kafka.{name}": text for name, text in properties.items() if name not in FORBIDDEN}
    )
