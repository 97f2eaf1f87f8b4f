"""Made-up people, towns and addresses, which quickstarts that belong together share."""

from __future__ import annotations

FIRST = ["Ada", "Bela", "Cleo", "Dora", "Edin", "Fay", "Gil", "Hana", "Ivo", "Jana"]
LAST = ["Arnold", "Bauer", "Costa", "Dahl"]
TOWNS = ["Bergen", "Graz", "Porto", "Ulm", "Bern", "Turku", "Ghent"]
STATES = ["NO", "AT", "PT", "DE", "CH", "FI", "BE"]
PEOPLE = [(first, last) for last in LAST for first in FIRST]
ADDRESSES = [f"10.{number * 7 % 250}.{number * 31 % 250}.{number + 1}" for number in range(40)]
SHOE_IDS = [f"00000000-0000-4000-8000-{number:012x}" for number in range(1, 13)]
BUYER_IDS = [f"00000000-0000-4000-9000-{number:012x}" for number in range(1, 41)]


def mail_of(number: int) -> str:
    first, last = PEOPLE[number]
    return f"{first}.{last}@example.com".lower()
