"""Plug-ins that settings of tests name."""

from barnabas.security.principal import Principal
from barnabas.security.principal_builder import Peer


def reversed_password(user: str, password: str) -> bool:
    return password == user[::-1]


class ByMechanism:
    """Puts the mechanism in front of the name."""

    def __call__(self, peer: Peer) -> Principal:
        return Principal(f"{peer.mechanism.lower()}-{peer.name}", "Robot")


def by_certificate_or_host(peer: Peer) -> Principal:
    return Principal(peer.subject, "Robot") if peer.subject else Principal(peer.host, "Host")


def nobody(peer: Peer) -> str:
    return "no principal"


def broken(user: str, password: str) -> bool:
    raise OSError("the directory of users is down")
