"""Small files beside the data: in a folder and in an object store alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.engine.catalogue.catalogue import Catalogue
from barnabas.engine.catalogue.reporter import Reporter
from barnabas.engine.checkpoints import checkpoint_of
from barnabas.engine.places.object_store import NoRecords
from barnabas.engine.places.place import Place, PlaceUnavailable, place_at
from barnabas.engine.upgrades import Continuation, QueryPlan, continue_plans, reset_query
from s3_server import s3_server

SUM = QueryPlan("sums", {"keys": ["shop"]})


@pytest.fixture(scope="module")
def object_store() -> Iterator[tuple[str, dict[str, str]]]:
    with s3_server() as found:
        yield found


@pytest.fixture(params=["folder", "file URL", "object store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "folder":
        return place_at(str(tmp_path))
    if request.param == "file URL":
        return place_at(f"file://{tmp_path}")
    url, settings = request.getfixturevalue("object_store")
    return place_at(f"{url}/{tmp_path.name}", settings)


def test_a_file_is_replaced_listed_and_deleted(place: Place) -> None:
    assert place.read("a/one.json") is None
    place.write("a/one.json", b"1")
    place.write("a/one.json", b"2")
    place.write("a/b/two.json", b"3")
    place.write("c/three.json", b"4")
    assert place.read("a/one.json") == b"2"
    assert place.names("a/") == ["a/b/two.json", "a/one.json"]
    place.delete("a/one.json")
    place.delete("a/one.json")
    assert place.delete_all("a/") == 1
    assert place.names("a/") == [] and place.names("c/") == ["c/three.json"]


def test_catalogue_and_plans_are_kept_there(place: Place) -> None:
    reporter = Reporter(place, "sums", "main")
    reporter.progress("totals", batch=3, rows_in=9)
    reporter.close()
    [entry] = Catalogue(place).applications()
    assert entry.programs[0].queries["totals"].rows_in == 9
    Catalogue(place).request_stop("sums", "me")
    assert Catalogue(place).is_stop_wanted("sums")
    assert continue_plans(place, "sums", [SUM]) == {"sums": Continuation.NEW}
    name = checkpoint_of("", "sums", "sums").lstrip("/") + "/offsets/0"
    place.write(name, b"x")
    assert reset_query(place, "sums", "sums") == 2
    assert place.read(name) is None


def test_a_place_that_does_not_answer_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PlaceUnavailable, match=r"file/a\.json cannot be used"):
        place_at(str(tmp_path / "file")).write("a.json", b"1")
    with pytest.raises(NoRecords, match="not at hdfs"):
        place_at("hdfs://name/lake")
