"""The state machine of a member of a classic group: every response, without a broker."""

import pytest

from barnabas.client.groups.membership import (
    NO_GENERATION,
    GroupSettings,
    JoinedMember,
    Membership,
    Offer,
    State,
    Step,
    coordinator_problem,
)
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse

OFFERS = [Offer("v0", b"me")]


def joined(
    code: int = 0, *, leader: str = "m-1", generation: int = 4, skip: bool = False
) -> JoinGroupResponse:
    member = JoinGroupResponse.JoinGroupResponseMember(member_id="m-1", metadata=b"me")
    return JoinGroupResponse(
        error_code=code,
        generation_id=generation,
        protocol_name="v0",
        leader=leader,
        member_id="m-1",
        members=[member] if leader == "m-1" else [],
        skip_assignment=skip,
    )


def stable(settings: GroupSettings | None = None) -> Membership:
    membership = Membership(settings or GroupSettings("g", "sr"))
    membership.join_request(OFFERS)
    assert membership.joined(joined()) is Step.GO_ON
    membership.sync_request({})
    assert membership.synced(SyncGroupResponse(assignment=b"all")) is Step.GO_ON
    assert membership.state is State.STABLE
    return membership


def test_a_new_member_joins_with_the_id_that_it_is_given() -> None:
    membership = Membership(GroupSettings("g", "sr", session_timeout_ms=7_000, rebalance_timeout_ms=9_000))
    first = membership.join_request(OFFERS)
    assert (first.group_id, first.member_id, first.protocol_type) == ("g", "", "sr")
    assert (first.session_timeout_ms, first.rebalance_timeout_ms) == (7_000, 9_000)
    assert [(each.name, each.metadata) for each in first.protocols] == [("v0", b"me")]
    answer = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m-1")
    assert membership.joined(answer) is Step.JOIN
    assert membership.join_request(OFFERS).member_id == "m-1"
    assert membership.generation == NO_GENERATION


def test_the_leader_assigns_and_the_others_do_not() -> None:
    leader = Membership(GroupSettings("g", "sr"))
    leader.join_request(OFFERS)
    leader.joined(joined())
    assert leader.assigns and leader.members == [JoinedMember("m-1", None, b"me")]
    request = leader.sync_request({"m-1": b"x"})
    assert (request.generation_id, request.member_id, request.protocol_name) == (4, "m-1", "v0")
    assert [(each.member_id, each.assignment) for each in request.assignments] == [("m-1", b"x")]
    follower = Membership(GroupSettings("g", "sr"))
    follower.join_request(OFFERS)
    follower.joined(joined(leader="m-0"))
    assert not follower.assigns and follower.leader == "m-0"


def test_a_static_leader_that_came_back_does_not_assign_again() -> None:
    membership = Membership(GroupSettings("g", "sr", instance_id="i"))
    assert membership.join_request(OFFERS).group_instance_id == "i"
    membership.joined(joined(skip=True))
    assert not membership.assigns


def test_a_rebalance_lets_the_member_join_with_its_id() -> None:
    membership = stable()
    answer = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    assert membership.handle_heartbeat_response(membership.heartbeat_request(), answer) is Step.JOIN
    assert membership.join_request(OFFERS).member_id == "m-1"
    membership.joined(joined(generation=5))
    assert membership.synced(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)) is Step.JOIN


@pytest.mark.parametrize(
    ("code", "member_id"), [(ErrorCode.UNKNOWN_MEMBER_ID, ""), (ErrorCode.ILLEGAL_GENERATION, "m-1")]
)
def test_a_member_that_the_coordinator_does_not_know_has_lost_its_assignment(
    code: ErrorCode, member_id: str
) -> None:
    membership = stable()
    answer = HeartbeatResponse(error_code=code)
    assert membership.handle_heartbeat_response(membership.heartbeat_request(), answer) is Step.LOST
    assert (membership.state, membership.generation) == (State.OUTSIDE, NO_GENERATION)
    assert membership.join_request(OFFERS).member_id == member_id
    membership.joined(joined())
    assert membership.synced(SyncGroupResponse(error_code=code)) is Step.LOST


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
    ],
)
def test_a_refusal_that_stays_is_raised_and_names_the_group(code: ErrorCode) -> None:
    membership = Membership(GroupSettings("the-group", "sr", instance_id="i"))
    membership.join_request(OFFERS)
    with pytest.raises(KafkaError, match="the-group") as caught:
        membership.joined(joined(code))
    assert caught.value.code is code
    assert (membership.state, membership.member_id) == (State.OUTSIDE, "")


def test_the_response_to_an_old_heartbeat_changes_nothing() -> None:
    membership = stable()
    old = membership.heartbeat_request()
    unknown = HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    membership.join_request(OFFERS)
    assert membership.handle_heartbeat_response(old, unknown) is Step.GO_ON
    membership.joined(joined(generation=5))
    membership.synced(SyncGroupResponse())
    assert membership.handle_heartbeat_response(old, unknown) is Step.GO_ON
    assert (membership.state, membership.generation) == (State.STABLE, 5)


def test_a_member_whose_session_ended_keeps_its_id_and_nothing_else() -> None:
    membership = stable()
    membership.session_ended()
    assert (membership.state, membership.generation) == (State.OUTSIDE, NO_GENERATION)
    assert membership.join_request(OFFERS).member_id == "m-1"


def test_leaving_names_the_member_as_the_version_can() -> None:
    membership = stable(GroupSettings("g", "sr", instance_id="i"))
    new = membership.leave_request(5, "over")
    assert [(each.member_id, each.group_instance_id, each.reason) for each in new.members] == [
        ("m-1", "i", "over")
    ]
    assert membership.leave_request(2).member_id == "m-1"
    membership.left()
    assert (membership.state, membership.member_id) == (State.OUTSIDE, "")


def test_errors_about_the_coordinator_are_told_from_those_about_the_member() -> None:
    for code in (
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ):
        problem = coordinator_problem(code, "g")
        assert problem is not None and problem.code is code
    for code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID):
        assert coordinator_problem(code, "g") is None
