"""A follower's fetch names all partitions that changed, and new partitions some at a time."""

from __future__ import annotations

from barnabas.broker.replicas.session_names import NEW_A_FETCH_MAX, Key, SessionNames


def key(number: int) -> Key:
    return b"t" * 16, number


def never(_: Key) -> bool:
    return False


def test_new_partitions_join_the_session_some_at_a_time() -> None:
    names = SessionNames()
    keys = [key(number) for number in range(3 * NEW_A_FETCH_MAX + 1)]
    names.start_anew(keys)
    fetched = []
    while names.new:
        portion = names.next(never)
        names.sent(portion)
        assert 0 < len(portion) <= NEW_A_FETCH_MAX
        fetched += portion
    assert fetched == keys == list(names.known)
    assert names.next(never) == []


def test_partitions_that_got_records_are_all_named_in_the_next_fetch() -> None:
    """The leader sends from the last named offset: a partition that is not named would be sent again."""
    names = SessionNames()
    keys = [key(number) for number in range(4 * NEW_A_FETCH_MAX)]
    names.sent(keys)
    for each in keys:
        names.changed[each] = None
    names.want(key(9_999))
    assert names.next(never) == [*keys, key(9_999)]


def test_partitions_left_out_of_a_fetch_do_not_delay_others() -> None:
    names = SessionNames()
    keys = [key(number) for number in range(2 * NEW_A_FETCH_MAX)]
    names.start_anew(keys)
    waiting = set(keys[:NEW_A_FETCH_MAX])
    assert names.next(lambda each: each in waiting) == keys[NEW_A_FETCH_MAX:]
    assert not names.new


def test_a_partition_that_comes_back_before_the_next_fetch_is_not_forgotten() -> None:
    names = SessionNames()
    names.sent([key(1), key(2)])
    names.leave_out(key(1))
    names.leave_out(key(2))
    assert names.is_ending
    names.want(key(1))
    assert names.next(never) == [key(1)]
    assert list(names.forgotten) == [key(2)]
    names.sent([key(1)])
    assert list(names.known) == [key(1)]


def test_without_a_session_each_fetch_names_every_partition() -> None:
    names = SessionNames()
    keys = [key(number) for number in range(2 * NEW_A_FETCH_MAX)]
    names.start_anew(keys)
    names.sent(names.next(never))
    names.name_all(keys)
    assert names.next(never) == keys
