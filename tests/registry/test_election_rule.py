"""The election of the primary as a rule, and the JSON that nodes of all registries exchange."""

import json

import pytest

from barnabas.registry.election.identity import (
    DUPLICATE_URLS,
    NOBODY,
    Identity,
    elect,
    election_of,
    identity_of,
)

ONE = Identity("http", "one", 8081)
TWO = Identity("http", "two", 8081)


def test_the_smallest_url_among_eligible_nodes_wins() -> None:
    assert elect({"b": TWO, "a": ONE}).primary == Identity("http", "one", 8081, is_primary=True)
    passive = Identity("http", "a-node", 8081, is_eligible=False)
    assert elect({"p": passive, "b": TWO, "a": ONE}).member_id == "a"
    assert elect({"p": passive}) == NOBODY
    ten, nine = Identity("http", "n", 10), Identity("http", "n", 9)
    assert elect({"ten": ten, "nine": nine}).member_id == "ten", "URLs are compared as text"


def test_the_primary_stays_while_it_is_eligible() -> None:
    two = Identity("http", "two", 8081, is_primary=True)
    assert elect({"a": ONE, "b": two}).member_id == "b"
    resigned = Identity("http", "two", 8081, is_eligible=False, is_primary=True)
    assert elect({"a": ONE, "b": resigned}).member_id == "a"


def test_two_nodes_with_one_url_are_an_error() -> None:
    election = elect({"a": ONE, "b": ONE, "c": TWO})
    assert (election.error, election.primary, election.member_id) == (DUPLICATE_URLS, None, None)
    assert json.loads(election.encode()) == {
        "version": 1,
        "error": 1,
        "master": None,
        "master_identity": None,
    }


def test_metadata_has_the_fields_of_other_registries() -> None:
    assert json.loads(ONE.encode()) == {
        "version": 1,
        "host": "one",
        "port": 8081,
        "master_eligibility": True,
        "scheme": "http",
        "leader": False,
    }
    assert identity_of(ONE.encode()) == ONE
    older = b'{"version":1,"host":"h","port":1,"scheme":"https","master_eligibility":false}'
    assert identity_of(older) == Identity("https", "h", 1, is_eligible=False)
    assert Identity("http", "::1", 8081).url == "http://[::1]:8081"


def test_assignments_are_read_back() -> None:
    election = elect({"a": ONE, "b": TWO})
    assert election_of(election.encode()) == election
    assert election_of(b"") == NOBODY
    assert election_of(b'{"version":1,"error":0,"master":null,"master_identity":null}') == NOBODY


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"host":"h"}',
        b'{"host":1,"port":1}',
        b'{"host":"h","port":"1"}',
        b'{"scheme":"ftp","host":"h","port":1}',
        b"[" * 100_000,
    ],
)
def test_metadata_of_another_shape_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError):
        identity_of(data)
