# SPDX-License-Identifier: Apache-2.0
"""ReplaySample and SampleInfo: named tuples of known fields."""

import pickle

import pytest

import reprise
from reprise import pybind, replay_sample


def test_fields_of_info():
    assert reprise.SampleInfo._fields == (
        "key",
        "probability",
        "table_size",
        "priority",
        "times_sampled",
    )


def test_sample_info_has_as_many_fields_as_the_sampler():
    assert len(reprise.SampleInfo._fields) == pybind.Sampler.NUM_INFO_TENSORS


def test_fields_of_sample():
    assert reprise.ReplaySample._fields == ("info", "data")


def test_zeros():
    zeros = reprise.SampleInfo.zeros()
    assert zeros == (0, 0.0, 0, 0.0, 0)
    assert [type(value) for value in zeros] == [int, float, int, float, int]


def test_text():
    assert repr(reprise.SampleInfo.zeros()) == (
        "SampleInfo(key=0, probability=0.0, table_size=0, priority=0.0, times_sampled=0)"
    )


def test_unpacks():
    info, data = reprise.ReplaySample(info=reprise.SampleInfo.zeros(), data=[1])
    assert info.key == 0 and data == [1]


def test_pickles():
    sample = reprise.ReplaySample(reprise.SampleInfo(1, 0.5, 2, 1.0, 3), {"a": 1})
    assert pickle.loads(pickle.dumps(sample)) == sample


def test_module_has_the_same():
    assert replay_sample.ReplaySample is reprise.ReplaySample
    assert replay_sample.SampleInfo is reprise.SampleInfo


def test_dtypes_and_shapes_of_tensorflow():
    tf = pytest.importorskip("tensorflow")
    assert reprise.SampleInfo.tf_dtypes() == (
        tf.uint64,
        tf.double,
        tf.int64,
        tf.double,
        tf.int32,
    )
    assert all(shape == tf.TensorShape([]) for shape in reprise.SampleInfo.tf_shapes())
