# SPDX-License-Identifier: Apache-2.0
"""reprise.v1.Runs with stubs of protobuf: reports, pages of runs, and refusals."""

import json
import math

import grpc
import pytest

from stubs import runs, runs_service


@pytest.fixture
def stub(channel):
    return runs_service.RunsStub(channel)


def read(stub, run, form):
    """Returns all pages of a run as one."""
    after, data = 0, b""
    while True:
        page = stub.ReadRuns(runs.ReadRunsRequest(run=run, format=form, after=after), timeout=120)
        data, after = data + page.data, page.after
        if not page.more:
            return data


def test_a_report_of_every_part(stub):
    report = runs.LogScalarsRequest(
        run="grpcio", scalars=[runs.Scalar(name="x", step=-5, time=7, value=math.inf),
                               runs.Scalar(name="y", step=2**63 - 1, value=-0.0)],
        actors=[runs.Actor(name="a", epsilon=0.5, version=3)],
        episode=runs.Episode(env="catch", variables=2, states=[1, 2, 3, 4]))
    assert stub.LogScalars(report, timeout=120).dropped == 0
    rows = read(stub, "grpcio", runs.RUN_FORMAT_CSV).decode().splitlines()
    assert rows[:2] == ["name,step,time,value", '"x",-5,7.000,inf']
    assert rows[2].startswith('"y",9223372036854775807,')
    lines = [json.loads(line) for line in read(stub, "", runs.RUN_FORMAT_LIST).splitlines()]
    [run] = [line for line in lines if line["name"] == "grpcio"]
    assert (run["points"], run["scalars"], run["actors"], run["episode"]) == (2, ["x", "y"], 1, 3)
    assert read(stub, "grpcio", runs.RUN_FORMAT_EVENTS).count(b"brain.Event:2") == 1


def test_states_that_are_not_packed(channel):
    """proto2 writers and some others send each number on its own."""
    call = channel.unary_unary("/reprise.v1.Runs/LogScalars")
    one, two = b"\x1d\x00\x00\x80\x3f", b"\x1d\x00\x00\x00\x40"
    call(b"\x0a\x01u\x22\x0f\x0a\x01e\x10\x01" + one + two, timeout=120)


@pytest.mark.parametrize("report", [
    runs.LogScalarsRequest(), runs.LogScalarsRequest(run="n" * 256),
    runs.LogScalarsRequest(run="a", scalars=[runs.Scalar()]),
    runs.LogScalarsRequest(run="a", scalars=[runs.Scalar(name="x", time=math.nan)]),
    runs.LogScalarsRequest(run="a", scalars=[runs.Scalar(name="x")] * 1025),
    runs.LogScalarsRequest(run="a", episode=runs.Episode(env="e", variables=2, states=[1])),
    runs.LogScalarsRequest(run="a", episode=runs.Episode(env="e", states=[1])),
])
def test_invalid_reports(stub, report):
    with pytest.raises(grpc.RpcError) as raised:
        stub.LogScalars(report, timeout=120)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_an_unknown_run(stub):
    with pytest.raises(grpc.RpcError) as raised:
        read(stub, "none", runs.RUN_FORMAT_CSV)
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND
