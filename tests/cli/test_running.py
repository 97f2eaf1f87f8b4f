"""How the tests of tools run them: what they take for the tool's output."""

from .conftest import without_clients


def test_clients_that_another_test_left_do_not_speak_for_the_tool() -> None:
    left = "%3|1794842900.422|FAIL|rdkafka#producer-1| [thrd:127.0.0.1:9/bootstrap]: Connection refused\n"
    assert without_clients(f"{left}No topics found.\n{left}100%|done\n") == "No topics found.\n100%|done\n"
