"""One rule: an ACL, or what another source (roles) adds to the same decision.

In: the fields of an ACL. Out: whether it matches a caller, and its text. Hosts are compared as text, as in
Apache Kafka; a host field that is a network (`10.0.0.0/8`, `2001:db8::/32`) matches every address in it,
which is our addition. Does not know: which rule wins.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple

from barnabas.security.acls.vocabulary import WILDCARD, Operation, PatternType, Permission, ResourceType

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address
PARSED_MAX = 4096  # texts of hosts that are remembered parsed


class Rule(NamedTuple):
    resource_type: int
    name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int
    source: str = ""  # of a rule that is no ACL: the text that explains it, such as the binding of a role

    def __str__(self) -> str:
        if self.source:
            return self.source
        return (
            f"{text_of(Permission, self.permission)} {text_of(Operation, self.operation)} on "
            f"{text_of(ResourceType, self.resource_type)} {text_of(PatternType, self.pattern_type)} "
            f"{self.name!r} for {self.principal} from {self.host}"
        )


class Host(NamedTuple):
    """The address of a caller, in the forms that rules are compared with."""

    text: str
    java_text: str  # IPv6 addresses as Java writes them: 0:0:0:0:0:0:0:1
    address: Address | None


@lru_cache(PARSED_MAX)
def host_of(text: str) -> Host:
    try:
        address: Address = ip_address(text.partition("%")[0])
    except ValueError:
        return Host(text, text, None)
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            address = address.ipv4_mapped
            return Host(str(address), str(address), address)
        parts = [int.from_bytes(address.packed[at : at + 2], "big") for at in range(0, 16, 2)]
        zone = text[len(text.partition("%")[0]) :]
        return Host(text, ":".join(f"{part:x}" for part in parts) + zone, address)
    return Host(text, text, address)


def host_matches(rule_host: str, host: Host) -> bool:
    if rule_host == WILDCARD or rule_host == host.java_text or rule_host == host.text:
        return True
    if "/" not in rule_host or host.address is None:
        return False
    network = network_of(rule_host)
    return network is not None and network.version == host.address.version and host.address in network


@lru_cache(PARSED_MAX)
def network_of(text: str) -> Network | None:
    """The network that a host field names; None if it is the text of no network."""
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def text_of(kind: type[Operation | ResourceType | PatternType | Permission], code: int) -> str:
    return kind(code).name if code in kind._value2member_map_ else str(code)
