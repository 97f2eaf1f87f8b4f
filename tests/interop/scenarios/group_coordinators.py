"""FindCoordinator: who looks after a group."""

from __future__ import annotations

from barnabas.protocol import ApiKey

from ..members import group
from ..requests import versions
from ..talk import Talk, scenario

FIND = ApiKey.FIND_COORDINATOR


@scenario
def of_one_group(talk: Talk) -> None:
    name = group(talk)
    for version in versions(FIND):
        talk.ask("a group", FIND, version, key=name, coordinator_keys=[name])
        talk.ask("a group without a name", FIND, version, key="", coordinator_keys=[""])
        odd = "white space, ümlaut und 漢字 " * 5
        talk.ask("a group with an odd name", FIND, version, key=odd, coordinator_keys=[odd])


@scenario
def of_many_groups(talk: Talk) -> None:
    names = [group(talk), *(talk.name(f"{n}") for n in range(5))]
    for version in (4, 5, 6):
        talk.ask("six groups", FIND, version, coordinator_keys=names)
        talk.ask("the same group three times", FIND, version, coordinator_keys=names[:1] * 3)
        talk.ask("no group", FIND, version, coordinator_keys=[])


@scenario
def of_wrong_kinds(talk: Talk) -> None:
    name = group(talk)
    for version in versions(FIND):
        for kind in (-1, 3, 7) if version else ():
            talk.ask(f"kind {kind}", FIND, version, key_type=kind, key=name, coordinator_keys=[name])
        if 1 <= version < 6:
            talk.ask("a share group", FIND, version, key_type=2, key=name, coordinator_keys=[name])
