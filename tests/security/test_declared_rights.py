"""The rights that handlers declare are those that Apache Kafka asks for, and no API is without them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.broker.api import routes
from barnabas.broker.api.needs import Need, Where
from barnabas.broker.handlers.loading import load_handlers
from barnabas.security.acls.vocabulary import OPERATIONS, Operation, ResourceType, word

APIS = json.loads((Path(__file__).parent / "data" / "rights.json").read_text())["apis"]
Right = tuple[str, str | None]
ALL_BITS = {"Topic": 3576, "Group": 3400, "Cluster": 8096, "TransactionalId": 33040, "User": 24576}


def declared() -> dict[str, list[Need]]:
    load_handlers()
    found: dict[str, list[Need]] = {}
    for kind in ("broker", "controller"):
        for endpoint in routes.endpoints(kind):
            found.setdefault(endpoint.key.name, []).extend(endpoint.needs)
    return found


def right_of(need: Need) -> Right:
    """In the words of the data: alternatives in the order of the alphabet, and the code of the refusal."""
    rights = [(need.resource, need.operation)]
    if need.instead is not None:
        operation, resource = need.instead.value
        rights.append((resource, operation))
    text = " or ".join(sorted(f"{word(resource)} {word(operation)}" for resource, operation in rights))
    return text, None if need.where is Where.LEFT_OUT else need.code.name


def test_every_served_api_is_in_the_data_and_the_other_way_round() -> None:
    assert set(declared()) == set(APIS)


@pytest.mark.parametrize("name", sorted(APIS))
def test_the_declared_rights_are_those_of_the_data(name: str) -> None:
    needs = declared()[name]
    assert {right_of(need) for need in needs} == {(right, code) for right, _, code in APIS[name]}
    shown = {(*right_of(need), need.where.value) for need in needs}
    assert all((right, code, shows) in shown for right, shows, code in APIS[name]), shown


def test_operations_of_resource_types() -> None:
    for resource, bits in ALL_BITS.items():
        [kind] = [each for each in ResourceType if word(each) == resource]
        assert sum(1 << each for each in OPERATIONS[kind]) == bits
    assert Operation.TWO_PHASE_COMMIT == 15
