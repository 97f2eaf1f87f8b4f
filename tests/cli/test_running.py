"""The fixture that runs tools separates their output from that of other tests."""

from .conftest import without_clients


def test_output_of_other_tests_clients_is_ignored() -> None:
    left = "%3|1794842900.422|FAIL|rdkafka#producer-1| [thrd:127.0.0.1:9/bootstrap]: Connection refused\n"
    assert without_clients(f"{left}No topics found.\n{left}100%|done\n") == "No topics found.\n100%|done\n"
