# SPDX-License-Identifier: Apache-2.0
"""reprise.v1.Rollouts with stubs of protobuf: every operation, waits, and refusals."""

import grpc
import pytest

from stubs import rollouts as r
from stubs import rollouts_service

INT32 = 3
SECOND = 10**9


@pytest.fixture
def stub(channel):
    made = rollouts_service.RolloutsStub(channel)
    options = r.RolloutOptions(group_size=2, max_staleness=2, max_groups=10, max_bytes=1 << 20,
                               consumers=[r.RolloutConsumer(name="c", columns=["x"])])
    made.CreateRollouts(r.CreateRolloutsRequest(rollouts="grpcio", options=options), timeout=120)
    yield made
    made.DropRollouts(r.DropRolloutsRequest(rollouts="grpcio"), timeout=120)


def apply(stub, timeout_ms=0, timeout=120, **op):
    return stub.ApplyRollouts(
        r.ApplyRolloutsRequest(rollouts="grpcio", op=r.RolloutOp(**op), timeout_ms=timeout_ms),
        timeout=timeout)


def put(stub, group, index, data):
    column = r.RolloutColumn(name="x", dtype=INT32, shape=[len(data) // 4], data=data)
    return apply(stub, kind=r.ROLLOUT_OP_PUT, group=group, index=index, first_version=1,
                 last_version=1, columns=[column])


def draw(stub, **more):
    return apply(stub, kind=r.ROLLOUT_OP_DRAW, consumer="c", groups=4, ttl=60 * SECOND, **more)


def test_a_group_from_the_first_item_to_the_acknowledgement(stub):
    assert put(stub, "g", 0, bytes(8)).fate == r.ROLLOUT_FATE_PARTIAL
    assert put(stub, "g", 0, bytes(8)).outcome == r.ROLLOUT_REPEATED
    large = bytes(range(256)) * 400
    assert put(stub, "g", 1, large).fate == r.ROLLOUT_FATE_COMPLETE
    assert apply(stub, kind=r.ROLLOUT_OP_ADVANCE, version=2).version == 2
    drawn = draw(stub)
    assert [g.name for g in drawn.groups] == ["g"] and len(drawn.items) == 2
    assert [len(i.columns[0].data) for i in drawn.items] == [8, len(large)]
    assert drawn.items[1].columns[0].data == large
    assert (drawn.version, drawn.group_size, drawn.items[0].first_version) == (2, 2, 1)
    peeked = stub.PeekRollouts(r.PeekRolloutsRequest(rollouts="grpcio", group="g"), timeout=120)
    assert (peeked.fate, peeked.lease) == (r.ROLLOUT_FATE_LEASED, 0)
    assert apply(stub, kind=r.ROLLOUT_OP_ACK, lease=drawn.lease).removed == 1
    assert apply(stub, kind=r.ROLLOUT_OP_ACK, lease=drawn.lease).outcome == r.ROLLOUT_REPEATED
    [info] = stub.ListRollouts(r.ListRolloutsRequest(rollouts="grpcio"), timeout=120).rollouts
    assert (info.acknowledged, info.consumers[0].drawn, info.staleness[1]) == (1, 1, 1)
    assert info.options.consumers[0].columns == ["x"]


def test_cursors(stub):
    apply(stub, kind=r.ROLLOUT_OP_SET_CURSOR, cursor="c", data=b"12")
    request = r.ReadCursorRequest(rollouts="grpcio", cursor="c")
    assert stub.ReadCursor(request, timeout=120).data == b"12"


@pytest.mark.parametrize("how", [{"timeout_ms": 100}, {"timeout_ms": -1, "timeout": 1.0}])
def test_the_end_of_a_wait_has_the_reason(stub, how):
    with pytest.raises(grpc.RpcError) as raised:
        draw(stub, **how)
    assert raised.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED


def test_a_draw_waits(stub):
    waiting = stub.ApplyRollouts.future(r.ApplyRolloutsRequest(
        rollouts="grpcio", timeout_ms=-1,
        op=r.RolloutOp(kind=r.ROLLOUT_OP_DRAW, consumer="c", groups=1, ttl=SECOND)), timeout=120)
    put(stub, "g", 0, bytes(4))
    put(stub, "g", 1, bytes(4))
    assert [g.name for g in waiting.result().groups] == ["g"]


@pytest.mark.parametrize("op", [
    {}, {"kind": r.ROLLOUT_OP_EXPIRE}, {"kind": r.ROLLOUT_OP_RESERVE, "group": "g"},
    {"kind": r.ROLLOUT_OP_DRAW, "groups": 1 << 17, "ttl": 1},
    {"kind": r.ROLLOUT_OP_PUT, "group": "g",
     "columns": [r.RolloutColumn(name="x", dtype=INT32, shape=[2], data=bytes(7))]},
    {"kind": r.ROLLOUT_OP_ADVANCE, "version": -1},
])
def test_invalid_operations(stub, op):
    with pytest.raises(grpc.RpcError) as raised:
        apply(stub, **op)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_no_rollouts(stub):
    with pytest.raises(grpc.RpcError) as raised:
        stub.DropRollouts(r.DropRolloutsRequest(rollouts="none"), timeout=120)
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND
