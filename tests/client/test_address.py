"""Addresses as people write them."""

import pytest

from barnabas.client.core.address import Address, parse_bootstrap


def test_a_list_of_servers_is_split_at_commas() -> None:
    assert parse_bootstrap("one:9092, two:9093 ,") == [Address("one", 9092), Address("two", 9093)]


def test_an_ipv6_host_stands_in_brackets() -> None:
    [address] = parse_bootstrap("[::1]:9092")
    assert address == Address("::1", 9092)
    assert str(address) == "[::1]:9092"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("localhost", "'localhost' is not host:port"),
        (":9092", "':9092' is not host:port"),
        ("localhost:", "the port must be a number"),
        ("localhost:0", "the port must be a number from 1 to 65535"),
        ("localhost:70000", "the port must be a number from 1 to 65535"),
        ("localhost:kafka", "the port must be a number"),
        ("::1:9092", "an IPv6 host is written in brackets"),
        (" , ", "no bootstrap server is named"),
    ],
)
def test_what_is_wrong_is_named(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem.replace("'", ".")):
        parse_bootstrap(text)
