# SPDX-License-Identifier: Apache-2.0
"""ReplaySample, SampleInfo, the errors, and the names of the package."""

import pytest

from reverb_suite.implementation import reverb, submodule

NAMES = ["Client", "DeadlineExceededError", "PatternDataset", "ReplaySample", "ReverbError",
         "SampleInfo", "Server", "TFClient", "Table", "TimestepDataset", "TrajectoryColumn",
         "TrajectoryDataset", "TrajectoryWriter", "Writer", "checkpointers", "rate_limiters",
         "selectors", "structured"]


@pytest.mark.parametrize("name", NAMES)
def test_public_names(name):
    assert hasattr(reverb, name)


@pytest.mark.parametrize("module, name", [
    ("client", "Client"), ("client", "Writer"), ("errors", "ReverbError"),
    ("errors", "DeadlineExceededError"), ("item_selectors", "Uniform"),
    ("rate_limiters", "MinSize"), ("replay_sample", "ReplaySample"),
    ("replay_sample", "SampleInfo"), ("reverb_types", "TableInfo"), ("server", "Server"),
    ("server", "Table"), ("structured_writer", "StructuredWriter"),
    ("trajectory_writer", "TrajectoryWriter"), ("trajectory_writer", "TrajectoryColumn"),
    ("platform.checkpointers_lib", "DefaultCheckpointer"),
])
def test_names_of_modules(module, name):
    assert hasattr(submodule(module), name)


@pytest.mark.parametrize("name", ["Client", "Server", "Table", "TrajectoryWriter", "ReplaySample"])
def test_one_class_under_two_names(name):
    homes = {"Client": "client", "Server": "server", "Table": "server",
             "TrajectoryWriter": "trajectory_writer", "ReplaySample": "replay_sample"}
    assert getattr(submodule(homes[name]), name) is getattr(reverb, name)


def test_fields_of_a_sample():
    assert reverb.ReplaySample._fields == ("info", "data")
    assert reverb.SampleInfo._fields == ("key", "probability", "table_size", "priority",
                                         "times_sampled")


def test_samples_are_tuples():
    one = reverb.ReplaySample(info=1, data=2)
    assert isinstance(one, tuple) and one == (1, 2)
    info, data = one
    assert (info, data) == (1, 2)


def test_zeros():
    zeros = reverb.SampleInfo.zeros()
    assert zeros == (0, 0.0, 0, 0.0, 0)
    assert isinstance(zeros, reverb.SampleInfo)


def test_errors():
    assert issubclass(reverb.ReverbError, Exception)
    assert issubclass(reverb.DeadlineExceededError, reverb.ReverbError)
    assert submodule("errors").ReverbError is reverb.ReverbError
    assert submodule("errors").DeadlineExceededError is reverb.DeadlineExceededError


def test_errors_can_be_made_and_caught():
    with pytest.raises(reverb.ReverbError, match="too late"):
        raise reverb.DeadlineExceededError("too late")
