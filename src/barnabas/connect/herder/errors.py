"""Refusals of a worker: a status of HTTP and a text that clients know."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.connect.config.secrets import HIDDEN


class Refused(Exception):
    """A request that a worker does not carry out."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Elsewhere(Exception):
    """Another worker must carry the request out: the leader, or the owner of a connector or task."""

    def __init__(self, url: str) -> None:
        super().__init__(f"the request belongs to the worker {url}")
        self.url = url


def not_found(name: str) -> Refused:
    return Refused(404, f"Connector {name} not found")


def unknown(name: str) -> Refused:
    return Refused(404, f"Unknown connector {name}")


def not_stopped(name: str) -> Refused:
    return Refused(
        400,
        "Connectors must be in the STOPPED state before their offsets can be modified. This can be done "
        f"for the specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint",
    )


def framework_offsets(word: str) -> str:
    """The message after offsets were altered or reset that the connector itself did not check."""
    return (
        f"The Connect framework-managed offsets for this connector have been {word} successfully. However, "
        f"if this connector manages offsets externally, they will need to be manually {word} in the system "
        "that the connector uses."
    )


def offsets_changed(word: str, has_say: bool) -> str:
    """The message after offsets were altered or reset; `has_say`: the connector itself checked them."""
    if has_say:
        return f"The offsets for this connector have been {word} successfully"
    return framework_offsets(word)


def refuse_hidden(config: Mapping[str, str | None], stored: Mapping[str, str]) -> None:
    """A client sent the text that hides secrets, and no secret is stored that it could stand for."""
    unknown = [name for name, value in config.items() if value == HIDDEN]
    if unknown:
        raise Refused(400, f"{', '.join(unknown)}: {HIDDEN} stands for a stored value, and none is stored")
    changed = [
        name for name, value in config.items() if HIDDEN in (value or "") and value != stored.get(name)
    ]
    if changed:
        raise Refused(
            400,
            f"{', '.join(changed)}: {HIDDEN} stands for a part of the stored value only while the rest is"
            " unchanged; write the secret, or a reference to a config provider",
        )
