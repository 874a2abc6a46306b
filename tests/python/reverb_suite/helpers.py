# SPDX-License-Identifier: Apache-2.0
"""Functions for what most tests do."""

import numpy as np


def insert(client, values, table="t", priorities=None):
    """Inserts each value as one item, in order."""
    for i, value in enumerate(values):
        client.insert(value, {table: 1.0 if priorities is None else priorities[i]})


def samples(client, table="t", count=1, **options):
    """Draws whole trajectories: a list of ReplaySample."""
    return list(client.sample(table, count, emit_timesteps=False, **options))


def sample(client, table="t", **options):
    return samples(client, table, 1, **options)[0]


def values(client, table="t", count=1):
    """Draws `count` samples. Returns the first number of each."""
    return [np.asarray(s.data[0]).reshape(-1)[0].item() for s in samples(client, table, count)]


def keys_by_value(client, table="t", count=1):
    """Draws `count` samples. Returns {value: key} of their items."""
    return {np.asarray(s.data[0]).reshape(-1)[0].item(): s.info.key
            for s in samples(client, table, count)}


def size(client, table="t"):
    return client.server_info()[table].current_size


def assert_same(got, expected):
    """Checks that dtype, shape and values are equal. Strings are compared as bytes."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    if expected.dtype.kind in "SOU":
        as_bytes = [x.encode() if isinstance(x, str) else bytes(x)
                    for x in expected.reshape(-1).tolist()]
        assert [bytes(x) for x in got.reshape(-1).tolist()] == as_bytes
        return
    assert got.dtype == expected.dtype, (got.dtype, expected.dtype)
    np.testing.assert_array_equal(got, expected)
